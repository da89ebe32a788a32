/** Reads the entries of clients into the form that `import` understands, and writes the entries that clients share. */
import { isJsonObject, type JsonObject } from "../model/json.ts";
import type { AgentClient, ClientProblem, ClientRead, WrittenServer } from "./agent-client.ts";

type Path = readonly (string | number)[];

/** Reports a problem of an entry; the path is relative to the entry. */
export type ReportProblem = (message: string, ...path: (string | number)[]) => void;

export interface EntryRules {
  /** Further keys that are copied unchanged. */
  readonly keys?: readonly string[];
  /** The unit of a number in `timeout`, which limits one call. */
  readonly timeout?: "call-seconds" | "call-milliseconds";
  /** Converts the client's references to ours. */
  readonly text?: (text: string) => string;
  /**
   * May change an entry in machine; false skips it, with a reported problem if it matters. `raw` is the original entry; `entry`
   * has only the copied keys.
   */
  readonly adapt?: (entry: JsonObject, raw: JsonObject, tell: ReportProblem, id: string) => boolean | void;
}

/**
 * Keys that mean the same everywhere. Others are dropped, because some of them (`tools`, `trust`, `auth`) mean something
 * different here.
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

  /** Adds the entries of an object by id. A missing object has none. */
  addMap(map: unknown, path: Path): this {
    if (map === undefined || map === null) return this;
    if (isJsonObject(map)) for (const [id, raw] of Object.entries(map)) this.add(id, raw, [...path, id]);
    else this.problem("an object of servers by name is expected here", path);
    return this;
  }

  add(id: string, raw: unknown, path: Path): void {
    if (!isJsonObject(raw)) {
      this.problem("this is not an object that describes a server", path);
      return;
    }
    const tell: ReportProblem = (message, ...inner) => this.problem(message, [...path, ...inner]);
    const entry = pick(raw, [...SHARED, ...(this.#rules.keys ?? [])]);
    const { timeout } = this.#rules;
    if (timeout !== undefined)
      setTimeLimit(entry, "toolTimeout", timeout === "call-seconds" ? secondsToMs(raw["timeout"]) : raw["timeout"]);
    reportLosses(raw, tell);
    if (this.#rules.adapt?.(entry, raw, tell, id) === false) return;
    if (!hasTarget(entry)) {
      tell("this has neither a command nor a URL, so it is not a server");
      return;
    }
    this.#servers.set(id, this.#rules.text === undefined ? entry : rewriteTexts(entry, this.#rules.text));
  }

  finish(): ClientRead {
    // With fromEntries, `__proto__` is an ordinary key.
    return { servers: Object.fromEntries(this.#servers), problems: this.#problems };
  }
}

/** The servers of the object at a path of the document. */
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

/** Ignores invalid values. */
export function setTimeLimit(entry: JsonObject, key: "timeout" | "toolTimeout", milliseconds: unknown): void {
  if (typeof milliseconds !== "number" || !Number.isFinite(milliseconds) || milliseconds <= 0) return;
  entry[key] = Math.max(1, Math.round(milliseconds));
}

/** Allows only these tools. An empty list allows none, so the server is disabled. */
export function allowOnly(entry: JsonObject, tools: unknown): void {
  if (!Array.isArray(tools)) return;
  if (tools.length === 0) disable(entry);
  else if (!tools.includes("*")) entry["includeTools"] = tools;
}

export function disable(entry: JsonObject): void {
  delete entry["disabled"];
  entry["enabled"] = false;
}

/** Adds a header or variable, unless it exists. */
export function addIfMissing(entry: JsonObject, key: "env" | "headers", name: string, value: string): void {
  const record = isJsonObject(entry[key]) ? entry[key] : {};
  if (!Object.hasOwn(record, name)) entry[key] = { ...record, [name]: value };
}

/** `${env:NAME}` as `${NAME}`. */
export function envColon(text: string): string {
  return text.replace(/\$\{env:([A-Za-z_]\w*)\}/g, "${$1}");
}

/** `$NAME` as `${NAME}`, but not after another `$`. */
export function dollarName(text: string): string {
  return text.replace(/(?<!\$)\$([A-Za-z_]\w*)/g, "${$1}");
}

/** Undefined for anything but a number. */
export function secondsToMs(seconds: unknown): number | undefined {
  return typeof seconds === "number" ? seconds * 1000 : undefined;
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
  if (raw["envFile"] !== undefined) tell("envFile is not imported; list its variables in env", "envFile");
  for (const key of ["oauth", "auth"]) {
    if (isJsonObject(raw[key])) tell("the login settings are not imported; log in again", key);
  }
}

function rewriteTexts(entry: JsonObject, rewrite: (text: string) => string): JsonObject {
  const rewritten: JsonObject = { ...entry };
  for (const key of TEXTS) if (Object.hasOwn(entry, key)) rewritten[key] = rewriteAll(entry[key], rewrite);
  return rewritten;
}

/** These keys hold lists and records of texts. Clients do not expand deeper values. */
function rewriteAll(value: unknown, rewrite: (text: string) => string): unknown {
  if (typeof value === "string") return rewrite(value);
  const one = (item: unknown): unknown => (typeof item === "string" ? rewrite(item) : item);
  if (Array.isArray(value)) return value.map(one);
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, one(item)]));
}

interface VscodeSandbox {
  /** The `sandbox` of the entry. */
  readonly sandbox: JsonObject;
  /** Allowed in VS Code and not here. */
  readonly narrower: readonly string[];
}

/** @param rules The entry's `sandbox`, which only counts with `sandboxEnabled`. */
export function translateVscodeSandbox(rules: unknown): VscodeSandbox {
  const { filesystem, network } = isJsonObject(rules) ? rules : {};
  const files = isJsonObject(filesystem) ? filesystem : {};
  const domains = textsOf(isJsonObject(network) ? network["allowedDomains"] : undefined);
  const denied = [...textsOf(files["denyRead"]), ...textsOf(files["denyWrite"])];
  const wanted = textsOf(files["allowWrite"]);
  // Patterns, and paths with denied parts, cannot be expressed here.
  const write = wanted.filter((path) => !/[*?[]/.test(path) && !denied.some((each) => isAtOrIn(each, path)));
  return {
    sandbox: { kind: "bubblewrap", ...(write.length === 0 ? {} : { write }) },
    narrower: [
      "it reads only the system and what sandbox.read names",
      ...(write.length === wanted.length ? [] : ["paths with patterns or exceptions may not be written"]),
      ...(domains.length === 0 ? [] : ["it has no network access, because single domains cannot be allowed"]),
    ],
  };
}

function textsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === "string") : [];
}

function isAtOrIn(path: string, folder: string): boolean {
  const bare = folder.replace(/[/\\]+$/, "");
  return path === bare || path.startsWith(`${bare}/`) || path.startsWith(`${bare}\\`);
}

type CommandServer = Extract<WrittenServer, { readonly command: string }>;
type AddressServer = Extract<WrittenServer, { readonly url: string }>;

export function isCommand(server: WrittenServer): server is CommandServer {
  return "command" in server;
}

/** The entry as the client writes it, with its token and its variables in the client's own form; undefined if it has none. */
export function writeServer(client: AgentClient, id: string, server: WrittenServer): JsonObject | undefined {
  if (isCommand(server)) return client.write(id, withReferences(client, server));
  const { token, ...address } = server;
  if (token === undefined) return client.write(id, address);
  const withHeader = (value: string): JsonObject | undefined =>
    client.write(id, { ...address, headers: { ...address.headers, Authorization: `Bearer ${value}` } });
  if ("text" in token) return withHeader(token.text);
  if (client.bearerVariable !== undefined) {
    const entry = client.write(id, address);
    return entry && { ...entry, [client.bearerVariable]: token.env };
  }
  return client.envReference === undefined ? undefined : withHeader(client.envReference(token.env));
}

/** Whether an entry can name the variable that a token is in. */
export function canReadToken({ bearerVariable, envReference }: AgentClient): boolean {
  return bearerVariable !== undefined || envReference !== undefined;
}

function withReferences({ reducesEnvironment, envReference }: AgentClient, server: CommandServer): CommandServer {
  const { envNames = [] } = server;
  if (reducesEnvironment === undefined || envReference === undefined || envNames.length === 0) return server;
  const references = Object.fromEntries(envNames.map((name) => [name, envReference(name)]));
  return { ...server, env: { ...references, ...server.env } };
}

/** `{command, args, env?}`; undefined for a server with a working directory, which would start in the wrong folder. */
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

/** `{[key]: record}`, or `{}` if the record is empty. */
export function someOf(key: string, record: Readonly<Record<string, string>> | undefined): JsonObject {
  return record === undefined || Object.keys(record).length === 0 ? {} : { [key]: { ...record } };
}
