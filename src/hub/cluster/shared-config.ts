/**
 * Keeps the config files of all nodes in sync. The store has the current document. A node whose file changes publishes the
 * difference; a node that sees a new document edits its file. The state of the last sync is in its home.
 */
import { hash } from "node:crypto";
import { access, constants, mkdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { Clock } from "../../base/clock.ts";
import { parseConfigText } from "../../config/dialects.ts";
import { editPaths, type PathEdit, textWithEdits } from "../../config/edit-config.ts";
import { loadConfig } from "../../config/load-config.ts";
import { realTarget, writeAtomic } from "../../files/write-atomic.ts";
import { asToolcribError } from "../../model/errors.ts";
import { canonicalJson, isJsonObject, type JsonObject } from "../../model/json.ts";
import type { LoadedConfig } from "../../model/loaded-config.ts";
import type { Settings, Store } from "../../store/store.ts";
import type { ConfigLocation } from "../reload/config-source.ts";
import { watchFiles } from "../reload/file-watcher.ts";
import {
  completeFrom,
  differences,
  type DocumentPath,
  mergeDocuments,
  plainCredentialPaths,
  sharedPart,
  valueAtPath,
  withoutPath,
  withValueAtPath,
} from "./shared-document.ts";

const SETTING = "cluster.config";
const MAX_ATTEMPTS = 20;
const RETRY_MS = 2000;
const MAX_RETRY_MS = 30_000;

interface SharedConfigOptions {
  readonly store: Pick<Store, "follow" | "place"> & { readonly settings: Pick<Settings, "get" | "exchange"> };
  /** Of the file that the hub was started with. */
  readonly file: string;
  readonly place: ConfigLocation & { readonly texts: Map<string, string> };
  readonly clock: Clock;
  /** How the file is changed. */
  readonly edit?: typeof editPaths;
  /** Whether it can be changed. */
  readonly isWritable?: (file: string) => Promise<boolean>;
  readonly warn: (message: string) => void;
}

/** The document of the last sync, and the file at that time: the same, unless the file cannot be written. */
interface LastSync {
  readonly document: JsonObject;
  readonly inFile: JsonObject;
}

interface OwnFile {
  readonly text: string;
  readonly document: JsonObject;
  /** Paths of plain credentials. */
  readonly withheld: readonly DocumentPath[];
  /** The node cannot write it: it was deployed to the nodes. */
  readonly isDeployed: boolean;
}

export class SharedConfig {
  readonly #options: SharedConfigOptions;
  #memory: LastSync | undefined;
  #last: Promise<void> = Promise.resolve();
  #toldWithheld = "";
  #toldReadOnly = false;
  #toldAway = false;
  #toldConflict = "";
  /** The config changed, and the hub could not load it yet. */
  #owesReload = false;
  #retryMs = RETRY_MS;
  #stopRetry = (): void => {};
  #stopped = false;

  constructor(options: SharedConfigOptions) {
    this.#options = options;
  }

  /** Resolves with the current config, before anything is made of it. */
  async begin(loaded: LoadedConfig): Promise<LoadedConfig> {
    const { place, file } = this.#options;
    this.#memory = await this.#recall();
    const isChanged = await this.#sync();
    return isChanged === true ? loadConfig({ ...place, file }) : loaded;
  }

  /**
   * @param hub `reload` loads the file; `onReload` reports when the file was loaded.
   * @returns Stops it.
   */
  follow(hub: { reload(): Promise<void>; onReload(listener: () => void): () => void }): () => void {
    const renew = (): void => {
      this.#last = this.#last.then(() => this.#attempt(hub.reload, renew));
    };
    const stopReload = hub.onReload(renew);
    const stopStore = this.#options.store.follow(({ topic, subject }) => {
      if (topic === "settings" && (subject === SETTING || subject === "*")) renew();
    });
    const { file, place, clock } = this.#options;
    // A reload reads the text in memory instead of the file, and would not notice that the file changed.
    const stopFile = watchFiles([file], () => place.texts.has(file) && renew(), { clock });
    // What changed since it began.
    renew();
    return () => {
      this.#stopped = true;
      stopFile();
      stopReload();
      stopStore();
      this.#stopRetry();
    };
  }

  /** Resolves when nothing is in progress. */
  settled(): Promise<void> {
    return this.#last;
  }

  async #attempt(reload: () => Promise<void>, renew: () => void): Promise<void> {
    if (this.#stopped) return;
    try {
      const isChanged = await this.#sync();
      this.#owesReload ||= isChanged === true;
      if (this.#owesReload) await reload();
      this.#owesReload = false;
      this.#toldAway = false;
      this.#retryMs = RETRY_MS;
      if (isChanged === undefined) this.#retry(renew);
    } catch (error) {
      if (this.#stopped) return;
      const { message } = asToolcribError(error);
      if (!this.#toldAway) this.#options.warn(`The config is not in sync with the other nodes: ${message}`);
      this.#toldAway = true;
      this.#retry(renew);
      this.#retryMs = Math.min(2 * this.#retryMs, MAX_RETRY_MS);
    }
  }

  #retry(renew: () => void): void {
    this.#stopRetry();
    if (!this.#stopped) this.#stopRetry = this.#options.clock.after(this.#retryMs, renew);
  }

  /** True if the config changed; undefined if the file cannot be used. */
  async #sync(): Promise<boolean | undefined> {
    const { settings } = this.#options.store;
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const own = await this.#read();
      if (own === undefined) return undefined;
      const stored = await settings.get(SETTING);
      const published = parsePublished(stored);
      const target = this.#target(own, published);
      if (published === undefined || this.#brings(own, target, published)) {
        // A merge of two valid files may be invalid.
        const problem = await this.#problemOf(own, target);
        if (problem !== undefined) return this.#hold(own, target, published?.document ?? target, problem);
        const asBase = this.#memory === undefined || own.isDeployed;
        const next = nextPublished(published, target, withoutPlainCredentials(own), asBase);
        if (!(await settings.exchange(SETTING, stored, JSON.stringify(next)))) continue;
      }
      if (published !== undefined && this.#memory === undefined) this.#tellJoined(own, target, published);
      this.#toldConflict = "";
      return this.#write(own, target);
    }
    throw new Error("other nodes keep changing it");
  }

  /** Whether anything is to be published. */
  #brings(own: OwnFile, target: JsonObject, published: PublishedConfig): boolean {
    if (!isDeepStrictEqual(target, published.document)) return true;
    if (this.#memory === undefined) return !hasSeen(published, withoutPlainCredentials(own));
    const isOther = !isDeepStrictEqual(this.#inFile(own, this.#memory.inFile), this.#memory.inFile);
    return own.isDeployed && isOther && !isDeepStrictEqual(withoutPlainCredentials(own), published.base);
  }

  /** The document that all nodes should have. */
  #target(own: OwnFile, published: PublishedConfig | undefined): JsonObject {
    const memory = this.#memory;
    if (memory === undefined) {
      if (published === undefined) return withoutPlainCredentials(own);
      return documentOnJoin(published, withoutPlainCredentials(own), this.#inFile(own, published.base), own.isDeployed);
    }
    const mine = mergeDocuments(memory.inFile, this.#inFile(own, memory.inFile), memory.document);
    return published === undefined ? mine : mergeDocuments(memory.document, mine, published.document);
  }

  /** Plain credentials count as the value that was there before. */
  #inFile({ document, withheld }: OwnFile, known: JsonObject): JsonObject {
    return withheld.reduce((draft, path) => {
      const before = valueAtPath(known, path);
      return before === undefined ? withoutPath(draft, path) : withValueAtPath(draft, path, before);
    }, document);
  }

  #tellJoined(own: OwnFile, target: JsonObject, published: PublishedConfig): void {
    const { file, warn } = this.#options;
    const brought = differences(published.document, target);
    const names = brought.map(({ path, value }) => `${path.join(".")}${value === undefined ? " (removed)" : ""}`);
    if (names.length > 0) {
      warn(`${file} is new to this node's cluster, so these settings now apply to all nodes: ${names.join(", ")}.`);
    }
    const mine = withoutPlainCredentials(own);
    const other = differences(mine, target, own.withheld).map(({ path }) => path.join("."));
    // All nodes were given this file: later changes are expected.
    if (other.length === 0 || isDeepStrictEqual(mine, published.base)) return;
    const reason = hasSeen(published, mine)
      ? `${file} is older than its cluster's config, so it changes nothing (to go back to it, put it in place while the nodes run)`
      : `This node is new to its cluster, and its config file differs`;
    warn(
      `${reason}: the cluster's config applies to ${other.join(", ")}. The file as it was before is in ${this.#beforeFile}.`,
    );
  }

  /** The text of the file with the shared document in it. */
  #textOf(own: OwnFile, target: JsonObject): string {
    return textWithEdits(this.#options.file, own.text, differences(own.document, target, own.withheld));
  }

  /** Why it could not be used here, if so. */
  async #problemOf(own: OwnFile, target: JsonObject): Promise<string | undefined> {
    const { place, file } = this.#options;
    try {
      await loadConfig({ ...place, file, texts: new Map([[file, this.#textOf(own, target)]]) });
      return undefined;
    } catch (error) {
      return asToolcribError(error).message;
    }
  }

  /** Uses the other nodes' config, and leaves the file as it is until the two can be merged. True if the config changed. */
  async #hold(own: OwnFile, wanted: JsonObject, theirs: JsonObject, problem: string): Promise<boolean> {
    const { file, place, warn } = this.#options;
    const paths = differences(theirs, wanted).map(({ path }) => path.join("."));
    const message = `The settings ${paths.join(", ")} in ${file} conflict with the other nodes' config, so they do not apply: ${problem}`;
    if (message !== this.#toldConflict) warn(message);
    this.#toldConflict = message;
    const [before, after] = [place.texts.get(file), this.#textOf(own, theirs)];
    await loadConfig({ ...place, file, texts: new Map([[file, after]]) });
    place.texts.set(file, after);
    return before !== after;
  }

  /** Writes the shared document into the file. True if the config changed. */
  async #write(own: OwnFile, target: JsonObject): Promise<boolean> {
    const { file, place, warn } = this.#options;
    const edits = differences(own.document, target, own.withheld);
    const before = place.texts.get(file);
    const inFile = this.#inFile(own, this.#memory?.inFile ?? {});
    if (edits.length === 0) {
      place.texts.delete(file);
      await this.#remember({ document: target, inFile });
      return before !== undefined && before !== own.text;
    }
    const after = this.#textOf(own, target);
    await loadConfig({ ...place, file, texts: new Map([[file, after]]) });
    if (this.#memory === undefined) await this.#save(this.#beforeFile, own.text);
    if (await this.#edit(edits)) {
      place.texts.delete(file);
      await this.#remember({ document: target, inFile: target });
      return true;
    }
    if (!this.#toldReadOnly) {
      warn(`${file} cannot be written. Changes of other nodes apply in memory, and are loaded again at each start.`);
    }
    this.#toldReadOnly = true;
    place.texts.set(file, after);
    await this.#remember({ document: target, inFile });
    return before !== after;
  }

  async #edit(edits: readonly PathEdit[]): Promise<boolean> {
    try {
      const { edit = editPaths, file } = this.#options;
      await edit(file, edits);
      return true;
    } catch (error) {
      const code = error instanceof Error && "code" in error ? String(error.code) : "";
      // EBUSY: a file that is mounted by itself cannot be replaced.
      if (["EACCES", "EPERM", "EROFS", "EBUSY"].includes(code)) return false;
      throw error;
    }
  }

  /** Undefined while it is being written or does not load; whoever loads it reports the problem. */
  async #read(): Promise<OwnFile | undefined> {
    const { file, place, warn, isWritable = canBeWritten } = this.#options;
    let text: string;
    try {
      text = await readFile(file, "utf8");
      // It is empty for a moment while it is written in place. Taken as it is, that would remove all settings from all nodes.
      if (text.trim() === "" && Object.keys(this.#memory?.inFile ?? {}).length > 0) return undefined;
      await loadConfig({ ...place, file, texts: new Map([[file, text]]) });
    } catch {
      return undefined;
    }
    const { value } = parseConfigText(file, text);
    const document = sharedPart(isJsonObject(value) ? value : {});
    const withheld = plainCredentialPaths(document);
    const places = withheld.map((path) => path.join(".")).join(", ");
    if (places !== this.#toldWithheld && places !== "") {
      warn(
        `${file} contains credentials in plain text, so this part stays on this node: ${places}. Use references such as secret://env/NAME to share it with all nodes.`,
      );
    }
    this.#toldWithheld = places;
    return { text, document, withheld, isDeployed: !(await isWritable(file)) };
  }

  get #memoryFile(): string {
    return join(this.#options.place.home, "cluster", "config.json");
  }

  get #beforeFile(): string {
    return join(this.#options.place.home, "cluster", "config.before");
  }

  async #recall(): Promise<LastSync | undefined> {
    const { file, store } = this.#options;
    try {
      const value: unknown = JSON.parse(await readFile(this.#memoryFile, "utf8"));
      if (!isJsonObject(value) || value["file"] !== file || value["store"] !== store.place) return undefined;
      const { document, inFile } = value;
      return isJsonObject(document) && isJsonObject(inFile) ? { document, inFile } : undefined;
    } catch {
      return undefined;
    }
  }

  async #remember(memory: LastSync): Promise<void> {
    if (isDeepStrictEqual(memory, this.#memory)) return;
    const { file, store } = this.#options;
    await this.#save(this.#memoryFile, `${JSON.stringify({ store: store.place, file, ...memory })}\n`);
    this.#memory = memory;
  }

  async #save(path: string, text: string): Promise<void> {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    await writeAtomic(path, text, { mode: 0o600 });
  }
}

/** The part that other nodes may see. */
function withoutPlainCredentials({ document, withheld }: OwnFile): JsonObject {
  return withheld.reduce(withoutPath, document);
}

async function canBeWritten(file: string): Promise<boolean> {
  try {
    const target = await realTarget(file);
    // The file is replaced by another one in the same folder.
    for (const path of [target, dirname(target)]) await access(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** A file that is older than this many others may count as new again. */
const MAX_SEEN = 200;

interface PublishedConfig {
  readonly revision: number;
  readonly document: JsonObject;
  /** The last file that was deployed, without what nodes wrote into it since. */
  readonly base: JsonObject;
  /** Digests of all files and documents so far, the newest last. */
  readonly seen: readonly string[];
}

function parsePublished(text: string | undefined): PublishedConfig | undefined {
  if (text === undefined) return undefined;
  const value: unknown = JSON.parse(text);
  if (!isJsonObject(value)) return undefined;
  const { revision, document, base = document, seen = [] } = value;
  if (typeof revision !== "number" || !isJsonObject(document) || !isJsonObject(base)) return undefined;
  return { revision, document, base, seen: Array.isArray(seen) ? seen.map(String) : [] };
}

/**
 * The document after a node without a last sync joins. Homes of containers start empty, so only the store can tell whether the
 * node's file is the current one, an older one, or a change.
 *
 * - A file that the cluster has seen changes nothing: it is current, or this node is behind.
 * - Any other file is a change against `base`: its differences apply to all nodes, and later changes of the document stay.
 * - What the file lacks of `base` is removed only if the node cannot write the file: then it was deployed and is complete. A
 *   writable file is completed, so that a node with a short file does not remove servers or rules of the others. An empty file
 *   is completed as well.
 *
 * @param file Without plain credentials.
 * @param mine The same, with the values of `base` in their places.
 */
function documentOnJoin(
  published: PublishedConfig,
  file: JsonObject,
  mine: JsonObject,
  isDeployed: boolean,
): JsonObject {
  const { base, document } = published;
  if (hasSeen(published, file)) return document;
  const isWhole = isDeployed && Object.keys(mine).length > 0;
  return mergeDocuments(base, isWhole ? mine : completeFrom(mine, base), document);
}

function hasSeen({ seen, base }: PublishedConfig, file: JsonObject): boolean {
  return isDeepStrictEqual(file, base) || seen.includes(documentDigest(file));
}

/** @param file Of the node that changed something; `asBase` if it was deployed. */
function nextPublished(
  before: PublishedConfig | undefined,
  document: JsonObject,
  file: JsonObject,
  asBase: boolean,
): PublishedConfig {
  const { revision = 0, base = file, seen = [] } = before ?? {};
  const fresh = [documentDigest(file), documentDigest(document)];
  const all = [...new Set([...seen.filter((each) => !fresh.includes(each)), ...fresh])];
  return { revision: revision + 1, document, base: asBase ? file : base, seen: all.slice(-MAX_SEEN) };
}

function documentDigest(document: JsonObject): string {
  return hash("sha256", canonicalJson(document)).slice(0, 32);
}
