/** Rules that no schema of single keys can express, and warnings about what is unwise. No message contains a value. */
import { isIP } from "node:net";
import { isLoopback } from "../base/network-address.ts";
import { clusterOf, type Config, type ModelSetting } from "../model/config.ts";
import type { Diagnostic } from "../model/loaded-config.ts";
import {
  fixedValues,
  type SandboxEntry,
  sandboxImageOf,
  sandboxKindOf,
  type ServerEntry,
} from "../model/server-spec.ts";
import { isCredentialName, isPlainText } from "../secrets/credential-names.ts";
import { findReferences, type Reference } from "../secrets/secret-references.ts";
import type { ConfigDocument, ConfigPath } from "./config-document.ts";

/** Mistakes that make the entry of a server unusable. */
export function serverProblems(document: ConfigDocument, path: ConfigPath, entry: ServerEntry): Diagnostic[] {
  const problems = new Findings(document, "error", path);
  const wrong = (at: ConfigPath, message: string): void => problems.add(at, "wrong_server", message);
  const { command, url, transport, sandbox, isolation, replicas = 1 } = entry;
  // An image may define by itself what to run.
  if (command === undefined && url === undefined && sandboxImageOf(sandbox) === undefined) {
    wrong([], "found neither command nor url; expected exactly one of them");
  }
  if (command !== undefined && url !== undefined) wrong([], "found both command and url; expected exactly one of them");
  if (command === undefined && url !== undefined && transport === "stdio") {
    wrong(["transport"], 'found "stdio" with a url; expected "http" or "sse"');
  }
  if (command !== undefined && url === undefined && transport !== undefined) {
    // A container may serve HTTP.
    const allowed = typeof sandbox === "object" && sandbox.port !== undefined ? "http" : "stdio";
    if (transport !== allowed)
      wrong(["transport"], `found ${JSON.stringify(transport)} with a command; expected "${allowed}"`);
  }
  // A url with references is judged when it is known, at connect time.
  if (url !== undefined && findReferences(url).length === 0 && !/^https?:\/\//i.test(url)) {
    wrong(["url"], "found a string that is not a web address; expected https://…, or http://… on loopback");
  }
  if (replicas > 1 && isolation !== "shared" && url === undefined) {
    wrong(["replicas"], `found ${replicas} with isolation "${isolation}"; only a shared server has replicas`);
  }
  if (sandbox === undefined) return problems.list;
  if (url !== undefined && sandboxKindOf(sandbox) !== "none") {
    const message = "a remote server cannot be put into a sandbox from here";
    problems.add(["sandbox"], "wrong_sandbox", message, "remove sandbox, or set a command");
  } else sandboxProblems(problems, ["sandbox"], sandbox);
  return problems.list;
}

/** Settings of a server that work and should be changed nevertheless. */
export function serverWarnings(document: ConfigDocument, path: ConfigPath, entry: ServerEntry): Diagnostic[] {
  const warnings = new Findings(document, "warning", path);
  const { auth, args = [], url } = entry;
  for (const where of ["env", "headers"] as const) {
    for (const [key, value] of Object.entries(entry[where] ?? {})) {
      if (isCredentialName(key)) warnings.plaintext([where, key], value);
    }
  }
  for (const { path: at, value } of fixedValues(entry.overrides)) {
    if (typeof value === "string" && isCredentialName(at[2] ?? "")) warnings.plaintext(["overrides", ...at], value);
  }
  if (auth?.type === "bearer") warnings.plaintext(["auth", "token"], auth.token);
  if (auth?.type === "api-key") warnings.plaintext(["auth", "key"], auth.key);
  if (auth !== undefined && "clientSecret" in auth && auth.clientSecret !== undefined) {
    warnings.plaintext(["auth", "clientSecret"], auth.clientSecret);
    const isBound = auth.issuer !== undefined || ("tokenUrl" in auth && auth.tokenUrl !== undefined);
    const message = "the client secret goes to whichever authorization server this server names";
    if (!isBound) warnings.add(["auth"], "unbound_client_secret", message, "set auth.issuer");
  }
  for (const index of secretArguments(args)) {
    const message = "a secret in args is visible to every user of the machine";
    warnings.add(["args", index], "secret_in_args", message, "pass it in env if the server can read it there");
  }
  if (url !== undefined && hasSecretInUrl(url)) {
    const message = "a secret in a url ends up in logs of proxies and servers";
    warnings.add(["url"], "secret_in_url", message, "pass it in headers or auth");
  }
  if (url !== undefined && isInsecureUrl(url) && entry.allowHttp !== true) {
    warnings.add(["url"], "insecure_url", "http is refused for a host that is not loopback", "use https");
  }
  const unused =
    url === undefined ? (["headers", "auth", "allowHttp"] as const) : (["args", "env", "cwd", "replicas"] as const);
  for (const key of unused) {
    if (entry[key] === undefined) continue;
    warnings.add([key], "unused_key", `${key} has no effect with ${url === undefined ? "a command" : "a url"}`);
  }
  sandboxWarnings(warnings, ["sandbox"], entry.sandbox);
  return warnings.list;
}

/** Mistakes outside of the servers. */
export function configProblems(document: ConfigDocument, config: Config): Diagnostic[] {
  const problems = new Findings(document, "error");
  for (const [index, entry] of config.sessions.allowHosts.entries()) {
    const hint = hostProblem(entry);
    if (hint === undefined) continue;
    const message = `found ${JSON.stringify(entry.slice(0, 100))}; expected a name or an address, with or without a port, *.suffix, or a network such as 10.1.0.0/16`;
    problems.add(["sessions", "allowHosts", index], "wrong_value", message, hint);
  }
  defaultSandboxProblems(problems, ["sandbox"], config.sandbox);
  defaultSandboxProblems(problems, ["skills", "sandbox"], config.skills.sandbox);
  clusterProblems(problems, document, config);
  tokenProblems(problems, config);
  return problems.list;
}

function tokenProblems(problems: Findings, { http }: Config): void {
  const names = new Set<string>();
  for (const [index, { name, token, sha256 }] of (http.auth?.tokens ?? []).entries()) {
    const at = ["http", "auth", "tokens", index];
    if ((token === undefined) === (sha256 === undefined)) {
      problems.add(
        at,
        "wrong_value",
        "a token has either `token` or `sha256`",
        "Remove one of them, or add the one that is missing.",
      );
    }
    if (name === undefined) continue;
    if (names.has(name))
      problems.add(
        [...at, "name"],
        "wrong_value",
        `two tokens are named ${JSON.stringify(name)}`,
        "Give each its own name.",
      );
    names.add(name);
  }
}

/** Settings outside of the servers that work and should be changed nevertheless. */
export function configWarnings(document: ConfigDocument, config: Config): Diagnostic[] {
  const { http, store, secrets, agent, sandbox, skills } = config;
  const warnings = new Findings(document, "warning");
  for (const [index, { token }] of (http.auth?.tokens ?? []).entries()) {
    warnings.plaintext(["http", "auth", "tokens", index, "token"], token);
  }
  const [, password] = /^[a-z]+:\/\/[^:/?#]*:([^/?#]*)@/i.exec(store ?? "") ?? [];
  warnings.plaintext(["store"], password, "a password is written as plain text");
  warnings.plaintext(["secrets", "key"], secrets.key, "the key of the encrypted secrets is written as plain text");
  modelWarnings(warnings, ["agent", "model"], agent.model);
  for (const [index, model] of agent.models.entries()) modelWarnings(warnings, ["agent", "models", index], model);
  sandboxWarnings(warnings, ["sandbox"], sandbox);
  sandboxWarnings(warnings, ["skills", "sandbox"], skills.sandbox);
  clusterWarnings(warnings, config);
  return warnings.list;
}

/** Collects diagnostics of one severity below one path of a document. */
class Findings {
  readonly list: Diagnostic[] = [];
  readonly #document: ConfigDocument;
  readonly #severity: Diagnostic["severity"];
  readonly #base: ConfigPath;

  constructor(document: ConfigDocument, severity: Diagnostic["severity"], base: ConfigPath = []) {
    this.#document = document;
    this.#severity = severity;
    this.#base = base;
  }

  add(path: ConfigPath, code: string, message: string, hint?: string): void {
    const report = { severity: this.#severity, code, message, hint };
    this.list.push(this.#document.report([...this.#base, ...path], report));
  }

  /** A credential that is written out where a reference should be. */
  plaintext(path: ConfigPath, value: string | undefined, message = "a credential is written as plain text"): void {
    if (value === undefined || !isPlainText(value)) return;
    this.add(path, "plain_credential", message, "use a reference such as ${NAME} or secret://env/NAME");
  }
}

/** Arguments that contain a secret: by reference, as the password of an address, or as the value of an option named like a credential. */
function secretArguments(args: readonly string[]): number[] {
  const found: number[] = [];
  for (const [index, arg] of args.entries()) {
    const [, option, value] = /^--?([A-Za-z][\w-]*)(?:=(.*))?$/s.exec(arg) ?? [];
    if (findReferences(arg).some(isSecretReference) || PASSWORD_IN_ADDRESS.test(arg)) found.push(index);
    else if (option !== undefined && isCredentialName(option)) {
      const next = args[index + 1];
      if (value !== undefined && value !== "" && isPlainText(value)) found.push(index);
      else if (value === undefined && next !== undefined && !next.startsWith("-") && isPlainText(next))
        found.push(index + 1);
    }
  }
  return found;
}

function isSecretReference(reference: Reference): boolean {
  return reference.kind === "secret" || isCredentialName(reference.name);
}

const PASSWORD_IN_ADDRESS = /^[a-z][a-z0-9+.-]*:\/\/[^/?#\s:]*:[^/?#\s@]*@/i;

/** Not with the URL class: references in the text are not URL syntax. */
function hasSecretInUrl(url: string): boolean {
  if (PASSWORD_IN_ADDRESS.test(url) || findReferences(url).some(isSecretReference)) return true;
  const [, query = ""] = /\?(.*)$/s.exec(url) ?? [];
  return query.split(/[&#]/).some((pair) => {
    const [name = "", value = ""] = pair.split("=", 2);
    return value !== "" && isCredentialName(name);
  });
}

/** A host with a reference in it is judged at connect time, when it is known. */
function isInsecureUrl(url: string): boolean {
  const [, host] = /^http:\/\/(?:[^/?#@]*@)?(\[[^\]]*\]|[^/?#:]*)/i.exec(url) ?? [];
  if (host === undefined || findReferences(host).length > 0 || !URL.canParse(`http://${host}`)) return false;
  return !isLoopback(new URL(`http://${host}`).hostname);
}

const CONTAINER_KEYS = ["image", "port", "path"] as const;
/** Keys that mean nothing without a sandbox. */
const SANDBOX_KEYS = ["read", "write", "memory", "cpus", "pids", "timeout"] as const;

function sandboxProblems(problems: Findings, path: ConfigPath, sandbox: SandboxEntry): void {
  if (typeof sandbox === "string") return;
  const kind = sandboxKindOf(sandbox);
  if (kind !== "container") {
    for (const key of CONTAINER_KEYS.filter((each) => sandbox[each] !== undefined)) {
      problems.add([...path, key], "wrong_sandbox", `found ${key} with kind "${kind}"; it needs kind "container"`);
    }
  } else if (sandbox.path !== undefined && sandbox.port === undefined) {
    const hint = "set port to the one that the server listens on";
    problems.add([...path, "path"], "wrong_sandbox", "found path without port", hint);
  }
}

function defaultSandboxProblems(problems: Findings, path: ConfigPath, sandbox: SandboxEntry | undefined): void {
  if (sandbox === undefined || typeof sandbox === "string") return;
  const before = problems.list.length;
  sandboxProblems(problems, path, sandbox);
  if (problems.list.length > before) return;
  for (const key of (["port", "path"] as const).filter((each) => sandbox[each] !== undefined)) {
    const message = `${key} belongs to one server, not to a default`;
    problems.add([...path, key], "wrong_sandbox", message, "set it in that entry");
  }
}

function sandboxWarnings(warnings: Findings, path: ConfigPath, sandbox: SandboxEntry | undefined): void {
  if (sandbox === undefined || typeof sandbox === "string" || sandboxKindOf(sandbox) !== "none") return;
  for (const key of SANDBOX_KEYS.filter((each) => sandbox[each] !== undefined)) {
    warnings.add([...path, key], "unused_key", `${key} has no effect with kind "none"`);
  }
}

function modelWarnings(warnings: Findings, path: ConfigPath, setting: ModelSetting | undefined): void {
  if (setting === undefined || typeof setting === "string") return;
  warnings.plaintext([...path, "apiKey"], setting.apiKey);
  for (const [name, value] of Object.entries(setting.headers ?? {})) {
    if (isCredentialName(name)) warnings.plaintext([...path, "headers", name], value);
  }
}

/** Why an entry of `allowHosts` matches nothing, though its author believes that it allows something. */
function hostProblem(entry: string): string | undefined {
  const [, host, port] = /^(\[[^\]]+\]|[^:/*]+):(\d{1,5})$/.exec(entry.trim()) ?? [];
  if (host !== undefined) return isHostPattern(host) && Number(port) <= 65_535 ? undefined : "without scheme and path";
  if (isLoopback(entry.trim().replace(/^::1$/, "[::1]")))
    return "a server of Toolcrib's own machine is named with its port: 127.0.0.1:8080";
  return isHostPattern(entry) ? undefined : "without scheme and path";
}

const LABEL = "[a-z\\d_](?:[a-z\\d_-]{0,61}[a-z\\d_])?";
const HOST_NAME = new RegExp(`^(?:\\*\\.)?${LABEL}(?:\\.${LABEL})*\\.?$`, "i");

function isHostPattern(entry: string): boolean {
  const host = entry.trim().replace(/^\[(.*)\]$/, "$1");
  if (isIP(host) !== 0) return true;
  const [, network = "", prefix = ""] = /^(.+)\/(\d{1,3})$/.exec(host) ?? [];
  const family = isIP(network);
  if (family !== 0) return Number(prefix) <= (family === 4 ? 32 : 128);
  // A name that ends in a number would be read as an address, and is not a valid one.
  return HOST_NAME.test(host) && !/(?:^|\.)\d+\.?$/.test(host);
}

/** `file` of a config given in code. */
const LIBRARY_FILE = "library";

/** A store that is a reference is judged when it is known; one that a program passes to the hub is seen only there. */
function clusterProblems(problems: Findings, { file }: ConfigDocument, config: Config): void {
  const { cluster, store, start, mcpServers } = config;
  if (cluster === undefined || cluster === null) return;
  const where: ConfigPath[] = start === "lazy" ? [["start"]] : [];
  for (const [id, entry] of Object.entries(mcpServers)) {
    if (entry.url !== undefined) continue;
    if (entry.start === "lazy") where.push(["mcpServers", id, "start"]);
    if (entry.idle !== undefined) where.push(["mcpServers", id, "idle"]);
  }
  for (const path of where) {
    const message = "the nodes of a cluster keep its programs running; one that starts on demand is not possible there";
    problems.add(path, "wrong_cluster", message, "remove it; servers with a url can have it");
  }
  if (file === LIBRARY_FILE && store === undefined) return;
  if (store !== undefined && (/^postgres(?:ql)?:\/\//i.test(store) || findReferences(store).length > 0)) return;
  const found = store === undefined ? "no store" : "a store that is a file of this machine";
  const message = `found a cluster with ${found}; its nodes share their state in PostgreSQL`;
  const hint = 'set "store" to a reference such as ${DATABASE_URL}, or to postgres://host/database';
  problems.add(["cluster"], "wrong_cluster", message, hint);
}

function clusterWarnings(warnings: Findings, { cluster: entry, mcpServers }: Config): void {
  const cluster = clusterOf(entry);
  if (cluster === undefined) {
    for (const [id, { replicas = 1, url }] of Object.entries(mcpServers)) {
      if (replicas <= 1 || url !== undefined) continue;
      const message = "replicas has no effect without a cluster";
      warnings.add(["mcpServers", id, "replicas"], "unused_key", message, 'set "cluster", or remove it');
    }
    return;
  }
  const { url, credentials } = cluster;
  const addresses: [string, ConfigPath][] =
    typeof url === "string"
      ? [[url, typeof entry === "string" ? ["cluster"] : ["cluster", "url"]]]
      : url.map((each, index) => [each, ["cluster", "url", index]]);
  for (const [address, path] of addresses) {
    const [, login] = /^[a-z]+:\/\/([^/?#]*)@/i.exec(address) ?? [];
    // NATS also takes a token in place of the user.
    warnings.plaintext(path, login?.slice(login.indexOf(":") + 1));
  }
  if (credentials?.includes("-----BEGIN") === true) warnings.plaintext(["cluster", "credentials"], credentials);
}
