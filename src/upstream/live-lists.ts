/** The definitions of one server, kept in step with what the server announces. */
import type { Clock } from "../base/clock.ts";
import { resultBytes } from "../base/json-bytes.ts";
import { formatBytes } from "../model/content.ts";
import { asToolcribError, ToolcribError } from "../model/errors.ts";
import { isJsonObject, type JsonObject } from "../model/json.ts";
import {
  METHOD_NOT_FOUND,
  type PromptDefinition,
  type ResourceDefinition,
  type ResourceTemplateDefinition,
  type ToolDefinition,
} from "../model/protocol.ts";
import { type Definitions, NO_DEFINITIONS } from "../model/source.ts";
import { mirroredParams } from "./http/mcp-headers.ts";
import type { Link } from "./link.ts";
import { rpcOf } from "./rpc-error.ts";

/** Servers announce changes in bursts, one per tool. */
const MIN_PAUSE_MS = 50;
/** Taking in what a list holds is about a twentieth of this: a server that announces changes all the time leaves the others theirs. */
const PAUSE_MS_PER_KB = 2;

interface LiveListsOptions {
  readonly clock: Clock;
  readonly timeoutMs: () => number;
  readonly warn: (text: string) => void;
  /** Applied to every list as it comes in, so that no one behind it sees a secret. Returns the same object if nothing changed. */
  readonly mask: <Lists>(lists: Lists) => Lists;
  readonly onChange: () => void;
  /** The server said that this list changed, and it is as it was. */
  readonly onSameAgain: (kind: ListKind) => void;
}

export class LiveLists {
  readonly #options: LiveListsOptions;
  readonly #readers: ReadonlyMap<ListKind, Coalescer>;
  #link: Link | undefined;
  #definitions: Definitions = NO_DEFINITIONS;
  /** Its tools by name, once a call has asked for one. */
  #named: { readonly tools: Definitions["tools"]; readonly byName: ReadonlyMap<string, ToolDefinition> } | undefined;
  /** While all lists are read together, one change is reported for all of them. */
  #together = 0;
  #changed = false;
  /** The kinds that were announced since they were last read. */
  readonly #announced = new Set<ListKind>();
  /** The kinds whose last reading failed. */
  readonly #unread = new Set<ListKind>();
  /** The kinds for which it was said that they contain a secret. */
  readonly #leaky = new Set<ListKind>();
  /** Of the last reading of each kind. */
  readonly #bytes = new Map<ListKind, number>();

  constructor(options: LiveListsOptions) {
    this.#options = options;
    this.#readers = new Map(
      LIST_KINDS.map((kind) => {
        const pauseMs = (): number => Math.max(MIN_PAUSE_MS, ((this.#bytes.get(kind) ?? 0) / 1024) * PAUSE_MS_PER_KB);
        return [kind, new Coalescer(options.clock, pauseMs, () => this.#read(kind))] as const;
      }),
    );
  }

  get definitions(): Definitions {
    return this.#definitions;
  }

  findTool(name: string): Definitions["tools"][number] | undefined {
    const { tools } = this.#definitions;
    // Of duplicates the last one counts, as in the catalog.
    if (this.#named?.tools !== tools) this.#named = { tools, byName: new Map(tools.map((tool) => [tool.name, tool])) };
    return this.#named.byName.get(name);
  }

  /** Whether every list of the link could be read. */
  get isComplete(): boolean {
    return this.#unread.size === 0;
  }

  /** Lists what the server gave before it was stopped. */
  recall(definitions: Definitions): void {
    this.#definitions = definitions;
  }

  /** Reads everything from a new link; what is listed stays until then. */
  async adopt(link: Link): Promise<void> {
    this.#link = link;
    this.#unread.clear();
    await this.readAll();
  }

  async readAll(): Promise<void> {
    this.#together++;
    await Promise.all(LIST_KINDS.map((kind) => this.readNow(kind)));
    this.#together--;
    this.#tell();
  }

  async readNow(kind: ListKind): Promise<void> {
    await this.#readers.get(kind)?.now();
  }

  /** The server said that this list changed. */
  announce(kind: ListKind): void {
    this.#announced.add(kind);
    this.#readers.get(kind)?.trigger();
  }

  /** Stops reading; what is listed stays. */
  release(): void {
    this.#link = undefined;
    for (const reader of this.#readers.values()) reader.stop();
  }

  clear(): void {
    this.release();
    if (this.#definitions === NO_DEFINITIONS) return;
    this.#definitions = NO_DEFINITIONS;
    this.#options.onChange();
  }

  async #read(kind: ListKind): Promise<void> {
    const link = this.#link;
    if (link === undefined) return;
    const { clock, timeoutMs, warn, mask } = this.#options;
    const wasAnnounced = this.#announced.delete(kind);
    const before = this.#definitions;
    if (!isJsonObject(link.agreement.capabilities[kind])) return this.#take(emptyOf(kind));
    this.#bytes.set(kind, 0);
    const read = await readKind(link, kind, {
      clock,
      timeoutMs: timeoutMs(),
      warn: (text) => link === this.#link && warn(text),
      onBytes: (bytes) => this.#bytes.set(kind, (this.#bytes.get(kind) ?? 0) + bytes),
    });
    // Meanwhile another link may have taken over.
    if (link !== this.#link) return;
    if (Object.keys(read).length < Object.keys(emptyOf(kind)).length) this.#unread.add(kind);
    else this.#unread.delete(kind);
    const lists = mask(read);
    if (lists !== read && !this.#leaky.has(kind)) {
      this.#leaky.add(kind);
      warn(`Its ${kind} list contains a secret that the hub knows. It is masked there and in everything made from it.`);
    }
    this.#take(lists);
    if (wasAnnounced && isSame(kind, before, this.#definitions)) this.#options.onSameAgain(kind);
  }

  #take(lists: Partial<Definitions>): void {
    this.#definitions = withUnchanged(this.#definitions, lists);
    this.#changed = true;
    this.#tell();
  }

  #tell(): void {
    if (this.#together > 0 || !this.#changed) return;
    this.#changed = false;
    this.#options.onChange();
  }
}

/** Runs a task once for many triggers: at once for the first, once more after a pause for all that came meanwhile. */
export class Coalescer {
  readonly #clock: Clock;
  readonly #pauseMs: () => number;
  readonly #task: () => Promise<void>;
  #running: Promise<void> | undefined;
  #queued: Promise<void> | undefined;
  #stopPause: (() => void) | undefined;
  #again = false;

  /** @param task Must not reject. */
  constructor(clock: Clock, pauseMs: () => number, task: () => Promise<void>) {
    this.#clock = clock;
    this.#pauseMs = pauseMs;
    this.#task = task;
  }

  trigger(): void {
    if (this.#running === undefined && this.#stopPause === undefined) void this.#start();
    else this.#again = true;
  }

  /** Resolves after a run that began after this was called; callers that wait together share one. */
  now(): Promise<void> {
    if (this.#running === undefined) return this.#start();
    this.#queued ??= this.#running.then(() => {
      this.#queued = undefined;
      return this.#start();
    });
    return this.#queued;
  }

  stop(): void {
    this.#stopPause?.();
    this.#stopPause = undefined;
    this.#again = false;
  }

  #start(): Promise<void> {
    this.stop();
    const run = this.#task().then(() => {
      this.#running = undefined;
      if (this.#queued === undefined) this.#pause();
    });
    this.#running = run;
    return run;
  }

  #pause(): void {
    this.#stopPause = this.#clock.after(this.#pauseMs(), () => {
      this.#stopPause = undefined;
      if (this.#again) void this.#start();
    });
  }
}

/** The lists whose changes a server announces; templates change together with resources. */
export type ListKind = "tools" | "resources" | "prompts";
export const LIST_KINDS: readonly ListKind[] = ["tools", "resources", "prompts"];

/** A server that never stops handing out cursors must not be read for ever. */
const MAX_PAGES = 1000;
/** All pages of one list together. Each entry is fingerprinted, scanned and indexed. */
const MAX_LIST_ENTRIES = 50_000;
const MAX_LIST_BYTES = 16 * 1024 * 1024;
const TOO_MANY_PAGES = `there were more than ${MAX_PAGES} pages`;
const TOO_MUCH = `a list may have ${MAX_LIST_ENTRIES} entries and ${formatBytes(MAX_LIST_BYTES)}`;

interface Reading {
  readonly clock: Clock;
  /** Time for all pages of one list. */
  readonly timeoutMs: number;
  readonly warn: (text: string) => void;
  readonly onBytes: (bytes: number) => void;
}

/** The lists of one kind; a list that could not be read is missing from the result, with a warning. */
async function readKind(link: Link, kind: ListKind, reading: Reading): Promise<Partial<Definitions>> {
  switch (kind) {
    case "tools": {
      const tools = await readList<ToolDefinition>(link, "tools/list", "tools", reading);
      return tools === undefined ? {} : { tools: usableTools(link, tools, reading) };
    }
    case "prompts": {
      const prompts = await readList<PromptDefinition>(link, "prompts/list", "prompts", reading);
      return prompts === undefined ? {} : { prompts };
    }
    case "resources": {
      const [resources, templates] = await Promise.all([
        readList<ResourceDefinition>(link, "resources/list", "resources", reading),
        readList<ResourceTemplateDefinition>(link, "resources/templates/list", "resourceTemplates", reading),
      ]);
      return { ...(resources && { resources }), ...(templates && { templates }) };
    }
  }
}

function isSame(kind: ListKind, one: Definitions, other: Definitions): boolean {
  return one[kind] === other[kind] && (kind !== "resources" || one.templates === other.templates);
}

function emptyOf(kind: ListKind): Partial<Definitions> {
  return kind === "resources" ? { resources: [], templates: [] } : { [kind]: [] };
}

/** Undefined if the list could not be read. */
async function readList<D extends JsonObject>(
  link: Link,
  method: string,
  key: string,
  reading: Reading,
): Promise<D[] | undefined> {
  const deadline = reading.clock.now() + reading.timeoutMs;
  const entries: unknown[] = [];
  let bytes = 0;
  const seen = new Set<string>();
  try {
    for (let cursor: string | undefined, page = 0; ; page++) {
      const timeoutMs = Math.max(deadline - reading.clock.now(), 1);
      const result = await link.peer.request(method, cursor === undefined ? {} : { cursor }, { timeoutMs });
      const list: unknown = result[key];
      if (Array.isArray(list)) {
        for (const entry of list) {
          const length = textOf(entry)?.length ?? 0;
          bytes += length;
          reading.onBytes(length);
          if (entries.length >= MAX_LIST_ENTRIES || bytes > MAX_LIST_BYTES) {
            reading.warn(`${method} was cut short after ${entries.length} entries: ${TOO_MUCH}.`);
            return named(entries, method, reading);
          }
          entries.push(entry);
        }
      } else reading.warn(`${method} was answered without a list of ${key}.`);
      const next = result["nextCursor"];
      if (typeof next !== "string" || next === "") break;
      // They are kept, too.
      bytes += next.length;
      if (seen.has(next) || page + 1 >= MAX_PAGES || bytes > MAX_LIST_BYTES) {
        const isMany = bytes <= MAX_LIST_BYTES;
        const why = seen.has(next) ? "the same cursor came twice" : isMany ? TOO_MANY_PAGES : TOO_MUCH;
        reading.warn(`${method} was cut short after ${entries.length} entries: ${why}.`);
        break;
      }
      seen.add(next);
      cursor = next;
    }
  } catch (error) {
    // Many servers that have resources do not know templates at all.
    if (key === "resourceTemplates" && rpcOf(error)?.code === METHOD_NOT_FOUND) return [];
    reading.warn(`${method} could not be read: ${asToolcribError(error).message}`);
    return undefined;
  }
  return named(entries, method, reading);
}

/** Undefined for an entry that cannot be serialized, which is left to the quarantine. */
function textOf(entry: unknown): string | undefined {
  try {
    return JSON.stringify(entry);
  } catch {
    return undefined;
  }
}

/**
 * The definitions with these lists in place of the former ones. An entry that is the same as before stays the same object,
 * and so does a list: each definition is checked, named and scanned once.
 */
function withUnchanged(
  before: Definitions,
  { tools, resources, templates, prompts }: Partial<Definitions>,
): Definitions {
  return {
    tools: tools === undefined ? before.tools : keepUnchanged(before.tools, tools),
    resources: resources === undefined ? before.resources : keepUnchanged(before.resources, resources),
    templates: templates === undefined ? before.templates : keepUnchanged(before.templates, templates),
    prompts: prompts === undefined ? before.prompts : keepUnchanged(before.prompts, prompts),
  };
}

function keepUnchanged<D>(before: readonly D[], now: readonly D[]): readonly D[] {
  if (before.length === 0) return now;
  const known = new Map(before.map((entry) => [textOf(entry), entry]));
  known.delete(undefined);
  const kept = now.map((entry) => known.get(textOf(entry)) ?? entry);
  return kept.length === before.length && kept.every((entry, index) => entry === before[index]) ? before : kept;
}

function named<D extends JsonObject>(entries: readonly unknown[], method: string, reading: Reading): D[] {
  const good = entries.filter(
    (entry) => typeof entry === "object" && entry !== null && "name" in entry && typeof entry.name === "string",
  );
  const bad = entries.length - good.length;
  if (bad > 0)
    reading.warn(
      `${method} contains ${bad} ${bad === 1 ? "entry" : "entries"} without a name, which ${bad === 1 ? "is" : "are"} left out.`,
    );
  // Only the name has been checked: the catalog looks at each definition and quarantines those that are not a D.
  return good as D[];
}

/** The modern HTTP transport forbids using a tool whose header annotations are invalid. */
function usableTools(link: Link, tools: ToolDefinition[], reading: Reading): ToolDefinition[] {
  if (link.agreement.era !== "modern" || link.wire.transport !== "http") return tools;
  return tools.filter((tool) => {
    const mirrored = mirroredParams(tool);
    if (!mirrored.ok) reading.warn(`The tool ${JSON.stringify(tool.name)} is left out: ${mirrored.reason}.`);
    return mirrored.ok;
  });
}

const EXTENSION = "io.modelcontextprotocol/skills";
const MAX_SKILL_PAGES = 100;
const MAX_SKILLS = 1000;

export interface SkillOffer {
  /** Entries as they came. */
  list(): Promise<unknown[]>;
  /** The bytes of a file, of which there may be no more than `size`. */
  read(uri: string, size: number): Promise<Uint8Array>;
}

/** Undefined if the server is not there, or offers none. */
export function skillOffer(link: Link | undefined, timeoutMs: number): SkillOffer | undefined {
  const extensions = link?.agreement.capabilities["extensions"];
  if (link === undefined || !isJsonObject(extensions) || !isJsonObject(extensions[EXTENSION])) return undefined;
  const request = (method: string, params: JsonObject): Promise<JsonObject> =>
    link.peer.request(method, params, { timeoutMs });
  return {
    list: () => listSkills(request),
    async read(uri, size) {
      const { contents } = await request("resources/read", { uri });
      const [content]: unknown[] = Array.isArray(contents) ? contents : [];
      const bytes = isJsonObject(content) ? bytesOf(content, size) : undefined;
      if (bytes === undefined) throw new ToolcribError("tool_error", `The server gave no file for ${uri}.`);
      return bytes;
    },
  };
}

/** The skills that a server offers by the MCP skills extension, as it says; whoever takes them in verifies them. */
async function listSkills(request: (method: string, params: JsonObject) => Promise<JsonObject>): Promise<unknown[]> {
  const entries: unknown[] = [];
  let cursor: unknown;
  let bytes = 0;
  for (let page = 0; page < MAX_SKILL_PAGES && entries.length < MAX_SKILLS; page++) {
    const result = await request("skills/list", cursor === undefined ? {} : { cursor });
    bytes += resultBytes(result, MAX_LIST_BYTES);
    if (bytes > MAX_LIST_BYTES) break;
    if (Array.isArray(result["skills"])) entries.push(...result["skills"]);
    cursor = result["nextCursor"];
    if (typeof cursor !== "string" || cursor === "") break;
  }
  return entries.slice(0, MAX_SKILLS);
}

function bytesOf({ text, blob }: JsonObject, size: number): Uint8Array | undefined {
  if (typeof text === "string") return text.length > size ? undefined : Buffer.from(text, "utf8");
  return typeof blob === "string" && blob.length <= Math.ceil(size / 3) * 4 ? Buffer.from(blob, "base64") : undefined;
}
