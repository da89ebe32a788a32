/**
 * Keeps the config files of all nodes in step. The store has the document that holds; a node that finds its own file changed
 * publishes the difference, one that finds the document changed edits its file. What it was last in step with is in its home.
 */
import { createHash } from "node:crypto";
import { access, constants, mkdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { Clock } from "../../base/clock.ts";
import { parseConfigText } from "../../config/dialects.ts";
import { editPaths, type PathEdit, textWithEdits } from "../../config/edit-config.ts";
import { loadConfig, type LoadedConfig } from "../../config/load-config.ts";
import { realTarget, writeAtomic } from "../../files/write-atomic.ts";
import { asToolcribError } from "../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
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

/** What this node was last in step with, and what its file said then: the same, unless the file cannot be written. */
interface LastSync {
  readonly document: JsonObject;
  readonly inFile: JsonObject;
}

interface OwnFile {
  readonly text: string;
  readonly document: JsonObject;
  /** Where plain credentials stand. */
  readonly withheld: readonly DocumentPath[];
  /** Put in place by somebody for the nodes, who cannot write it. */
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
  /** What counts as the file is another one, and the hub could not take it over yet. */
  #owesReload = false;
  #retryMs = RETRY_MS;
  #stopRetry = (): void => {};
  #stopped = false;

  constructor(options: SharedConfigOptions) {
    this.#options = options;
  }

  /** Before anything is made of the config: resolves with the one that holds. */
  async begin(loaded: LoadedConfig): Promise<LoadedConfig> {
    const { place, file } = this.#options;
    this.#memory = await this.#recall();
    const isChanged = await this.#sync();
    return isChanged === true ? loadConfig({ ...place, file }) : loaded;
  }

  /**
   * @param hub `reload` takes over what the file says by now; `onReload` tells when the file was taken over.
   * @returns Ends it.
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
    // Whoever reloads reads the text that stands for the file, and does not hear that the file is another one.
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

  /** Resolves when nothing is under way. */
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

  /** True if what counts as the file is another one; undefined if the file says nothing that can be used. */
  async #sync(): Promise<boolean | undefined> {
    const { settings } = this.#options.store;
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const own = await this.#read();
      if (own === undefined) return undefined;
      const stored = await settings.get(SETTING);
      const published = parsePublished(stored);
      const target = this.#target(own, published);
      if (published === undefined || this.#brings(own, target, published)) {
        // A merge of two files that both load may not.
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

  /** What all are to say. */
  #target(own: OwnFile, published: PublishedConfig | undefined): JsonObject {
    const memory = this.#memory;
    if (memory === undefined) {
      if (published === undefined) return withoutPlainCredentials(own);
      return documentOnJoin(published, withoutPlainCredentials(own), this.#inFile(own, published.base), own.isDeployed);
    }
    const mine = mergeDocuments(memory.inFile, this.#inFile(own, memory.inFile), memory.document);
    return published === undefined ? mine : mergeDocuments(memory.document, mine, published.document);
  }

  /** What is in plain text counts as what stood there before it was. */
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
    // The one that all nodes were given: what they changed since is no surprise.
    if (other.length === 0 || isDeepStrictEqual(mine, published.base)) return;
    const reason = hasSeen(published, mine)
      ? `${file} is older than its cluster's config, so it changes nothing (to go back to it, put it in place while the nodes run)`
      : `This node is new to its cluster, and its config file differs`;
    warn(
      `${reason}: the cluster's config applies to ${other.join(", ")}. The file as it was before is in ${this.#beforeFile}.`,
    );
  }

  /** The file with what holds for all in it. */
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

  /** Goes on with what the others have, and leaves the file as it is until both go together. True if that is something else. */
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

  /** Makes the file say what holds for all. True if it did not before. */
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
    if (this.#memory === undefined) await this.#keepBefore(own.text);
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

  /** Undefined while it does not load: what is wrong with it is told by whoever loads it. */
  async #read(): Promise<OwnFile | undefined> {
    const { file, place, warn, isWritable = canBeWritten } = this.#options;
    let text: string;
    try {
      text = await readFile(file, "utf8");
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

  #keepBefore(text: string): Promise<void> {
    return this.#save(this.#beforeFile, text);
  }

  async #save(path: string, text: string): Promise<void> {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    await writeAtomic(path, text, { mode: 0o600 });
  }
}

/** What of it may be told to others. */
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

/** What the store has of the config of all nodes: the document that holds, and what of the files led to it. */

/** A file that is older than that many others may count as new again. */
const MAX_SEEN = 200;

interface PublishedConfig {
  readonly revision: number;
  readonly document: JsonObject;
  /** The last file that was put in place for the nodes, as opposed to what they wrote into it since. */
  readonly base: JsonObject;
  /** Digests of all that files said so far, the newest last. */
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
 * What becomes of the document where a node has no memory of it. Homes of containers begin empty, so the node cannot know by
 * itself whether its file is the one that all have, an older one, or a change; the store does.
 *
 * - A file that the cluster has seen changes nothing: all have it, or this node lags behind.
 * - Any other is a change against `base`: what it says otherwise counts for all, what the document got since stays.
 * - What it lacks of `base` is taken out only if the file cannot be written, because then somebody put it in place for the
 *   nodes and it is all that they say. A file that can be written gets what it lacks, so that no node that joins with a
 *   short file takes servers or rules from the others. The same holds for a file that says nothing at all.
 *
 * @param file What it says without plain credentials.
 * @param mine The same with what `base` has in their places.
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

/** @param file Of the node that changed something; `asBase` if it was put in place for the nodes. */
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
  return createHash("sha256")
    .update(JSON.stringify(sortKeys(document)))
    .digest("hex")
    .slice(0, 32);
}

/** The order of keys says nothing. */
function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (!isJsonObject(value)) return value;
  const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, item]) => [key, sortKeys(item)]));
}
