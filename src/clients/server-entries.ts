/** From a client's own entries to the words that `import` understands; what all clients have in common. */
import { isJsonObject, type JsonObject } from "../model/json.ts";
import type { ClientProblem, ClientRead, WrittenServer } from "./agent-client.ts";

type Path = readonly (string | number)[];

/** Tells of something about one entry; the path is inside of the entry. */
export type ReportProblem = (message: string, ...path: (string | number)[]) => void;

export interface EntryRules {
  /** Further keys that are taken as they are. */
  readonly keys?: readonly string[];
  /** What a number in `timeout` means: the seconds or milliseconds that one call may take. */
  readonly timeout?: "call-seconds" | "call-milliseconds";
  /** Writes the client's references as ours. */
  readonly text?: (text: string) => string;
  /**
   * The last word on an entry: may change it in place. false leaves it out; the reason, if it is of interest, is told.
   * `raw` is the entry as it was found, of which `entry` has only the keys that are taken.
   */
  readonly adapt?: (entry: JsonObject, raw: JsonObject, tell: ReportProblem, id: string) => boolean | void;
}

/**
 * Keys that mean the same everywhere. Others are dropped, because some of them (`tools`, `trust`, `auth`) have another
 * meaning here than in a client.
 */
const SHARED = ["command", "args", "env", "cwd", "url", "headers", "type", "disabled", "enabled"];
const TEXTS = ["command", "args", "env", "environment", "cwd", "url", "serverUrl", "httpUrl", "headers"];

/** Collects the entries of one document. */
export class ServerCollector {
  readonly #rules: EntryRules;
  readonly #servers = new Map<string, JsonObject>();
  readonly #problems: ClientProblem[] = [];

  constructor(rules: EntryRules) {
    this.#rules = rules;
  }

  problem(message: string, path: Path): void {
    this.#problems.push({ path, message });
  }

  /** The entries of an object by id. A missing one holds none. */
  addMap(map: unknown, path: Path): this {
    if (map === undefined || map === null) return this;
    if (isJsonObject(map)) for (const [id, raw] of Object.entries(map)) this.add(id, raw, [...path, id]);
    else this.problem("an object of servers by name is expected here", path);
    return this;
  }

  add(id: string, raw: unknown, path: Path): void {
    if (!isJsonObject(raw)) {
      this.problem("this is no object that describes a server", path);
      return;
    }
    const tell: ReportProblem = (message, ...inner) => this.problem(message, [...path, ...inner]);
    const entry = pick(raw, [...SHARED, ...(this.#rules.keys ?? [])]);
    if (typeof raw["timeout"] === "number" && this.#rules.timeout !== undefined) {
      setTimeLimit(entry, "toolTimeout", raw["timeout"] * (this.#rules.timeout === "call-seconds" ? 1000 : 1));
    }
    reportLosses(raw, tell);
    if (this.#rules.adapt?.(entry, raw, tell, id) === false) return;
    if (!hasTarget(entry)) {
      tell("this has neither a command nor an address, so it is no server");
      return;
    }
    this.#servers.set(id, this.#rules.text === undefined ? entry : rewriteTexts(entry, this.#rules.text));
  }

  finish(): ClientRead {
    // fromEntries makes a server called __proto__ a key like any other.
    return { servers: Object.fromEntries(this.#servers), problems: this.#problems };
  }
}

/** The servers of an object that stands at a path of the document. */
export function readMapAt(document: unknown, path: readonly string[], rules: EntryRules = {}): ClientRead {
  return new ServerCollector(rules).addMap(valueAt(document, path), path).finish();
}

export function valueAt(document: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (value, key) => (isJsonObject(value) && Object.hasOwn(value, key) ? value[key] : undefined),
    document,
  );
}

export function objectAt(document: unknown, ...path: string[]): JsonObject {
  const value = valueAt(document, path);
  return isJsonObject(value) ? value : {};
}

export function pick(raw: JsonObject, keys: readonly string[]): JsonObject {
  return Object.fromEntries(keys.filter((key) => Object.hasOwn(raw, key)).map((key) => [key, raw[key]]));
}

/** Milliseconds, as a limit must be here; nonsense is left out. */
export function setTimeLimit(entry: JsonObject, key: "timeout" | "toolTimeout", milliseconds: unknown): void {
  if (typeof milliseconds !== "number" || !Number.isFinite(milliseconds) || milliseconds <= 0) return;
  entry[key] = Math.max(1, Math.round(milliseconds));
}

/** Only these tools. An empty list allows none, which here a server says by being switched off. */
export function allowOnly(entry: JsonObject, tools: unknown): void {
  if (!Array.isArray(tools)) return;
  if (tools.length === 0) disable(entry);
  else if (!tools.includes("*")) entry["includeTools"] = tools;
}

export function disable(entry: JsonObject): void {
  delete entry["disabled"];
  entry["enabled"] = false;
}

/** A header or variable beside those that are there, which win. */
export function addIfMissing(entry: JsonObject, key: "env" | "headers", name: string, value: string): void {
  const record = isJsonObject(entry[key]) ? entry[key] : {};
  if (!Object.hasOwn(record, name)) entry[key] = { ...record, [name]: value };
}

/** `${env:NAME}` as `${NAME}`. */
export function envColon(text: string): string {
  return text.replace(/\$\{env:([A-Za-z_]\w*)\}/g, "${$1}");
}

/** The reference to the text of a file. */
export function fileReference(path: string): string {
  return `\${secret://file/${path}}`;
}

function hasTarget(entry: JsonObject): boolean {
  const { command } = entry;
  if (typeof command === "string" ? command !== "" : Array.isArray(command) && command.length > 0) return true;
  return ["url", "serverUrl", "httpUrl"].some((key) => typeof entry[key] === "string" && entry[key] !== "");
}

function reportLosses(raw: JsonObject, tell: ReportProblem): void {
  if (raw["envFile"] !== undefined) tell("envFile is not taken over; name its variables in env", "envFile");
  for (const key of ["oauth", "auth"]) {
    if (isJsonObject(raw[key])) tell("the settings for logging in are not taken over; log in again", key);
  }
}

function rewriteTexts(entry: JsonObject, rewrite: (text: string) => string): JsonObject {
  const rewritten: JsonObject = { ...entry };
  for (const key of TEXTS) if (Object.hasOwn(entry, key)) rewritten[key] = rewriteAll(entry[key], rewrite);
  return rewritten;
}

/** Lists and records of texts are all that these keys hold; what lies deeper is no text that a client would expand. */
function rewriteAll(value: unknown, rewrite: (text: string) => string): unknown {
  if (typeof value === "string") return rewrite(value);
  const one = (item: unknown): unknown => (typeof item === "string" ? rewrite(item) : item);
  if (Array.isArray(value)) return value.map(one);
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, one(item)]));
}

/** The forms of a written entry that several clients share. */

type CommandServer = Extract<WrittenServer, { readonly command: string }>;
type AddressServer = Extract<WrittenServer, { readonly url: string }>;

export function isCommand(server: WrittenServer): server is CommandServer {
  return "command" in server;
}

/** `{command, args, env?}`, and undefined for a server with a working directory: started elsewhere it would go wrong. */
export function commandEntry(server: CommandServer): JsonObject | undefined {
  return server.cwd === undefined ? commandEntryWithCwd(server) : undefined;
}

/** `{command, args, env?, cwd?}`. */
export function commandEntryWithCwd(server: CommandServer): JsonObject {
  return {
    command: server.command,
    args: [...server.args],
    ...someOf("env", server.env),
    ...(server.cwd === undefined ? {} : { cwd: server.cwd }),
  };
}

/** `{url, headers?}`. */
export function addressEntry(server: AddressServer): JsonObject {
  return { url: server.url, ...someOf("headers", server.headers) };
}

/** The record under its key, unless it is empty. */
export function someOf(key: string, record: Readonly<Record<string, string>> | undefined): JsonObject {
  return record === undefined || Object.keys(record).length === 0 ? {} : { [key]: { ...record } };
}
