/** The lists of servers as they last gave them, kept in the store: shown while a server starts, or while a lazy one sleeps. */
import { createHash } from "node:crypto";
import type { Clock } from "../base/clock.ts";
import { canonicalJson, isJsonObject, type JsonObject } from "../model/json.ts";
import { isLazy, type ServerSpec } from "../model/server-spec.ts";
import type { TransportKind } from "../model/server-state.ts";
import type { Definitions } from "../model/source.ts";
import type { Store, StoredList } from "../store/store.ts";
import { linkSettings } from "./connection-state.ts";
import type { Agreement } from "./handshake.ts";

/** Secrets are masked in all of it. */
export interface ServerLists {
  readonly transport: TransportKind;
  readonly agreement: Agreement;
  readonly definitions: Definitions;
  /** Set if they were given to one user or session: its instructions are for no one else. */
  readonly isPrivate?: boolean;
}

/** The memory of one server. */
export interface ListMemory {
  /** Undefined for a server that was never seen, or not in its present form. */
  readonly known: ServerLists | undefined;
  save(lists: ServerLists): void;
}

/** A server with longer lists is started to read them. */
const MAX_LENGTH = 8 * 1024 * 1024;
/** Servers start together, so their lists are written together, when clients have got theirs. */
const WRITE_AFTER_MS = 1000;

interface KnownListsOptions {
  /** Without one, nothing outlives the hub. */
  readonly store: Pick<Store, "lists"> | undefined;
  readonly clock: Clock;
  readonly warn: (message: string) => void;
}

export class KnownLists {
  readonly #options: KnownListsOptions;
  /** By server and spec. */
  readonly #known = new Map<string, ServerLists>();
  /** By server and spec. */
  readonly #unwritten = new Map<string, StoredList>();
  #stopTimer: (() => void) | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(options: KnownListsOptions) {
    this.#options = options;
  }

  /** Reads what is known of these servers. Never rejects: what is not known is learned again. */
  async prepare(specs: readonly ServerSpec[]): Promise<void> {
    const { store, warn } = this.#options;
    const wanted = specs.filter((spec) => spec.enabled && isKept(spec) && !this.has(spec)).map(keyOf);
    if (store === undefined || wanted.length === 0) return;
    try {
      for (const { server, spec, lists } of await store.lists.get(wanted)) {
        const read = readLists(lists);
        if (read !== undefined) this.#known.set(nameOf({ server, spec }), read);
      }
    } catch (error) {
      warn(`The lists of servers cannot be read from the store, so lazy ones are started too: ${reasonOf(error)}`);
    }
  }

  has(spec: ServerSpec): boolean {
    return this.#known.has(nameOf(keyOf(spec)));
  }

  memoryOf(spec: ServerSpec): ListMemory {
    const key = keyOf(spec);
    const name = nameOf(key);
    let saved: string | undefined;
    return {
      known: this.#known.get(name),
      save: (lists) => {
        // Whoever lists nothing could never be used again, and so not be started.
        if (!offersAnything(lists.definitions)) return;
        const text = JSON.stringify(lists);
        const digest = createHash("sha256").update(text).digest("base64");
        if (digest === saved || text.length > MAX_LENGTH) return;
        saved = digest;
        this.#known.set(name, lists);
        this.#unwritten.set(name, { ...key, lists: text });
        this.#stopTimer ??= this.#options.clock.after(WRITE_AFTER_MS, () => this.#writeAll());
      },
    };
  }

  /**
   * For a server that was removed. If it comes back, it is seen for the first time: what it offered before must not be pinned in the
   * place of what it offers then.
   */
  forget(server: string): void {
    for (const names of [this.#known, this.#unwritten]) {
      for (const name of names.keys()) if (name.endsWith(` ${server}`)) names.delete(name);
    }
    this.#write([server], (store) => store.lists.remove(server));
  }

  /** Writes what is not written yet, and resolves when everything is. Never rejects. */
  settled(): Promise<void> {
    this.#writeAll();
    return this.#writing;
  }

  #writeAll(): void {
    this.#stopTimer?.();
    this.#stopTimer = undefined;
    const entries = [...this.#unwritten.values()];
    this.#unwritten.clear();
    if (entries.length === 0) return;
    this.#write(
      entries.map(({ server }) => server),
      (store) => store.lists.put(entries),
    );
  }

  #write(servers: readonly string[], change: (store: Pick<Store, "lists">) => Promise<void>): void {
    const { store, warn } = this.#options;
    if (store === undefined) return;
    this.#writing = this.#writing
      .then(() => change(store))
      .catch((error: unknown) => warn(`The lists of "${servers.join('", "')}" cannot be kept: ${reasonOf(error)}`));
  }
}

type Lists = { readonly [Kind in keyof Definitions]: readonly unknown[] };

/** Those of one user or session are not shown to others while a server starts. */
function isKept(spec: ServerSpec): boolean {
  return isLazy(spec) || spec.isolation === "shared";
}

export function offersAnything({ tools, resources, templates, prompts }: Lists): boolean {
  return tools.length + resources.length + templates.length + prompts.length > 0;
}

interface SpecKey {
  readonly server: string;
  readonly spec: string;
}

/** Made of the spec with its references unresolved: another command or address has another key. */
function keyOf(spec: ServerSpec): SpecKey {
  const digest = createHash("sha256")
    .update(canonicalJson(linkSettings(spec)))
    .digest("hex");
  return { server: spec.id, spec: digest };
}

function nameOf({ server, spec }: SpecKey): string {
  return `${spec} ${server}`;
}

/** Undefined for what this version did not write. Single definitions are checked by the catalog, as those of a server are. */
function readLists(text: string): ServerLists | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isJsonObject(value) || !isJsonObject(value["agreement"]) || !isJsonObject(value["definitions"]))
    return undefined;
  const { agreement, definitions } = value;
  const isWhole =
    ["tools", "resources", "templates", "prompts"].every((kind) => isListOfNamed(definitions[kind])) &&
    isJsonObject(agreement["capabilities"]) &&
    ["legacy", "modern"].includes(String(agreement["era"])) &&
    ["stdio", "http", "sse"].includes(String(value["transport"]));
  // As `save` wrote it, as far as anyone relies on it.
  return isWhole ? (value as unknown as ServerLists) : undefined;
}

function isListOfNamed(list: unknown): boolean {
  return (
    Array.isArray(list) && list.every((entry: JsonObject) => isJsonObject(entry) && typeof entry["name"] === "string")
  );
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
