/** Rules for one server entry that no schema of single keys can say, and warnings about what is unwise in it. */
import { isIP } from "node:net";
import { isLoopback } from "../base/network-address.ts";
import {
  type AgentConfig,
  type ClusterConfig,
  clusterOf,
  type Config,
  type HttpConfig,
  type ModelSetting,
  type SessionsConfig,
} from "../model/config.ts";
import { type SandboxEntry, sandboxImageOf, sandboxKindOf, type ServerEntry } from "../model/server-spec.ts";
import { isCredentialName, isPlainText } from "../secrets/credential-names.ts";
import { findReferences, type Reference } from "../secrets/secret-references.ts";
import type { ConfigDocument, ConfigPath, Diagnostic } from "./config-document.ts";

const REFERENCE_HINT = "use a reference such as ${NAME} or secret://env/NAME";

/** What makes the entry unusable. */
export function serverProblems(document: ConfigDocument, path: ConfigPath, entry: ServerEntry): Diagnostic[] {
  const problems: Diagnostic[] = [];
  const wrong = (at: ConfigPath, message: string): void => {
    problems.push(document.report([...path, ...at], { severity: "error", code: "wrong_server", message }));
  };
  const { command, url, transport, isolation, replicas = 1 } = entry;
  // An image may know by itself what to run.
  const image = sandboxImageOf(entry.sandbox);
  if (command === undefined && url === undefined && image === undefined)
    wrong([], "found neither command nor url; allowed is exactly one of them");
  if (command !== undefined && url !== undefined)
    wrong([], "found both command and url; allowed is exactly one of them");
  if (command === undefined && url !== undefined && transport === "stdio") {
    wrong(["transport"], 'found "stdio" with a url; allowed is "http" or "sse"');
  }
  if (
    command !== undefined &&
    url === undefined &&
    transport !== undefined &&
    transport !== transportOfCommand(entry)
  ) {
    wrong(
      ["transport"],
      `found ${JSON.stringify(transport)} with a command; allowed is "${transportOfCommand(entry)}"`,
    );
  }
  // A url with references is judged when it is known, at connect time.
  if (url !== undefined && findReferences(url).length === 0 && !/^https?:\/\//i.test(url)) {
    wrong(["url"], "found a text that is no web address; allowed is https://…, or http://… on loopback");
  }
  if (replicas > 1 && isolation !== "shared" && url === undefined) {
    wrong(["replicas"], `found ${replicas} with isolation "${isolation}"; only a shared server has replicas`);
  }
  return [...problems, ...sandboxProblems(document, path, entry)];
}

/** How a program is talked to: a container may serve HTTP. */
function transportOfCommand({ sandbox }: ServerEntry): "stdio" | "http" {
  return typeof sandbox === "object" && sandbox.port !== undefined ? "http" : "stdio";
}

/** What works and should be changed all the same. No message holds a value. */
export function serverWarnings(document: ConfigDocument, path: ConfigPath, entry: ServerEntry): Diagnostic[] {
  const warnings: Diagnostic[] = [];
  const warn = (at: ConfigPath, code: string, message: string, hint?: string): void => {
    warnings.push(document.report([...path, ...at], { severity: "warning", code, message, hint }));
  };

  for (const where of ["env", "headers"] as const) {
    for (const [key, value] of Object.entries(entry[where] ?? {})) {
      if (isCredentialName(key) && isPlainText(value)) {
        warn([where, key], "plain_credential", "a credential is written as plain text", REFERENCE_HINT);
      }
    }
  }
  const auth = entry.auth;
  if (auth?.type === "bearer" && isPlainText(auth.token)) {
    warn(["auth", "token"], "plain_credential", "a credential is written as plain text", REFERENCE_HINT);
  }
  if (auth?.type === "api-key" && isPlainText(auth.key)) {
    warn(["auth", "key"], "plain_credential", "a credential is written as plain text", REFERENCE_HINT);
  }
  if (
    auth !== undefined &&
    "clientSecret" in auth &&
    auth.clientSecret !== undefined &&
    isPlainText(auth.clientSecret)
  ) {
    warn(["auth", "clientSecret"], "plain_credential", "a credential is written as plain text", REFERENCE_HINT);
  }
  if (auth !== undefined && "clientSecret" in auth && auth.clientSecret !== undefined && !hasFixedIssuer(auth)) {
    const message = "the client secret goes to whichever authorization server this server names";
    warn(["auth"], "unbound_client_secret", message, "set auth.issuer");
  }
  for (const index of secretArguments(entry.args ?? [])) {
    const message = "a secret in args is visible to every user of the machine";
    warn(["args", index], "secret_in_args", message, "pass it in env if the server can read it there");
  }
  if (entry.url !== undefined) {
    if (hasSecretInUrl(entry.url)) {
      const message = "a secret in a url ends up in logs of proxies and servers";
      warn(["url"], "secret_in_url", message, "pass it in headers or auth");
    }
    if (isInsecureUrl(entry.url) && entry.allowHttp !== true) {
      warn(["url"], "insecure_url", "http is refused for a host that is not loopback", "use https");
    }
  }
  const isRemote = entry.url !== undefined;
  const unused = isRemote ? (["args", "env", "cwd", "replicas"] as const) : (["headers", "auth", "allowHttp"] as const);
  for (const key of unused) {
    if (entry[key] === undefined) continue;
    warn([key], "unused_key", `${key} has no effect with ${isRemote ? "a url" : "a command"}`);
  }
  return [...warnings, ...sandboxWarnings(document, [...path, "sandbox"], entry.sandbox)];
}

/** Whether it is written down to whom a client's credentials may be sent. */
function hasFixedIssuer(auth: NonNullable<ServerEntry["auth"]>): boolean {
  return ("issuer" in auth && auth.issuer !== undefined) || ("tokenUrl" in auth && auth.tokenUrl !== undefined);
}

/** Arguments that hold a secret: by reference, or as the value of an option named like a credential. */
function secretArguments(args: readonly string[]): number[] {
  const found: number[] = [];
  for (const [index, arg] of args.entries()) {
    const [, option, value] = /^--?([A-Za-z][\w-]*)(?:=(.*))?$/s.exec(arg) ?? [];
    if (findReferences(arg).some(isSecretReference)) found.push(index);
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

/** Not with the URL class: the text may hold references, which are no URL syntax. */
function hasSecretInUrl(url: string): boolean {
  if (/^[a-z]+:\/\/[^/?#\s]*:[^/?#\s]*@/i.test(url)) return true;
  const query = url.slice(url.indexOf("?") + 1);
  if (query === url) return findReferences(url).some(isSecretReference);
  const named = query.split(/[&#]/).some((pair) => {
    const [name = "", value = ""] = pair.split("=", 2);
    return value !== "" && isCredentialName(name);
  });
  return named || findReferences(url).some(isSecretReference);
}

/** A host that holds a reference is judged at connect time, when it is known. */
function isInsecureUrl(url: string): boolean {
  const [, host] = /^http:\/\/(?:[^/?#@]*@)?(\[[^\]]*\]|[^/?#:]*)/i.exec(url) ?? [];
  if (host === undefined || findReferences(host).length > 0 || !URL.canParse(`http://${host}`)) return false;
  return !isLoopback(new URL(`http://${host}`).hostname);
}

/** Rules for `sandbox` that no schema of single keys can say. */

/** Keys that only a container has a use for. */
const CONTAINER_KEYS = ["image", "port", "path"] as const;
/** Keys that mean nothing where there is no cage. */
const SANDBOX_KEYS = ["read", "write", "memory", "cpus", "pids", "timeout"] as const;

/** What makes the cage of one server unusable. */
function sandboxProblems(document: ConfigDocument, path: ConfigPath, entry: ServerEntry): Diagnostic[] {
  const { sandbox, url } = entry;
  if (sandbox === undefined) return [];
  const at = [...path, "sandbox"];
  if (url !== undefined && sandboxKindOf(sandbox) !== "none") {
    return [
      wrongSandbox(document, at, "a remote server cannot be caged from here", "remove sandbox, or give a command"),
    ];
  }
  return kindProblems(document, at, sandbox);
}

/** What makes a default cage unusable. */
export function defaultSandboxProblems(
  document: ConfigDocument,
  { sandbox, skills }: Pick<Config, "sandbox" | "skills">,
): Diagnostic[] {
  return [
    ...(sandbox === undefined ? [] : sharedSandboxProblems(document, ["sandbox"], sandbox)),
    ...(skills.sandbox === undefined ? [] : sharedSandboxProblems(document, ["skills", "sandbox"], skills.sandbox)),
  ];
}

/** What has no effect. */
export function sandboxWarnings(
  document: ConfigDocument,
  path: ConfigPath,
  sandbox: SandboxEntry | undefined,
): Diagnostic[] {
  if (sandbox === undefined || typeof sandbox === "string" || sandboxKindOf(sandbox) !== "none") return [];
  return SANDBOX_KEYS.filter((key) => sandbox[key] !== undefined).map((key) =>
    document.report([...path, key], {
      severity: "warning",
      code: "unused_key",
      message: `${key} has no effect with kind "none"`,
    }),
  );
}

function sharedSandboxProblems(document: ConfigDocument, path: ConfigPath, sandbox: SandboxEntry): Diagnostic[] {
  const problems = kindProblems(document, path, sandbox);
  if (typeof sandbox === "string") return problems;
  const single = (["port", "path"] as const).filter((key) => sandbox[key] !== undefined);
  return [
    ...problems,
    ...single
      .filter(() => problems.length === 0)
      .map((key) =>
        wrongSandbox(
          document,
          [...path, key],
          `${key} belongs to one server, not to a default`,
          "set it in that entry",
        ),
      ),
  ];
}

function kindProblems(document: ConfigDocument, path: ConfigPath, sandbox: SandboxEntry): Diagnostic[] {
  if (typeof sandbox === "string") return [];
  const kind = sandboxKindOf(sandbox);
  if (kind !== "container") {
    return CONTAINER_KEYS.filter((key) => sandbox[key] !== undefined).map((key) =>
      wrongSandbox(document, [...path, key], `found ${key} with kind "${kind}"; it needs kind "container"`, undefined),
    );
  }
  if (sandbox.path === undefined || sandbox.port !== undefined) return [];
  return [
    wrongSandbox(document, [...path, "path"], "found path without port", "set port to the one that the server is at"),
  ];
}

function wrongSandbox(
  document: ConfigDocument,
  path: ConfigPath,
  message: string,
  hint: string | undefined,
): Diagnostic {
  return document.report(path, { severity: "error", code: "wrong_sandbox", message, hint });
}

/** Keys of models that are written out. No message holds a value. */
export function agentWarnings(document: ConfigDocument, { model, models }: AgentConfig): Diagnostic[] {
  const settings: (readonly [ConfigPath, ModelSetting | undefined])[] = [
    [["agent", "model"], model],
    ...models.map((each, index) => [["agent", "models", index], each] as const),
  ];
  return settings.flatMap(([path, setting]) =>
    plaintextModelCredentials(setting).map((at) =>
      document.report([...path, ...at], {
        severity: "warning",
        code: "plain_credential",
        message: "a credential is written as plain text",
        hint: "use a reference such as ${NAME} or secret://env/NAME",
      }),
    ),
  );
}

function plaintextModelCredentials(setting: ModelSetting | undefined): ConfigPath[] {
  if (setting === undefined || typeof setting === "string") return [];
  const { apiKey, headers = {} } = setting;
  const key = apiKey !== undefined && isPlainText(apiKey) ? [["apiKey"]] : [];
  const named = Object.entries(headers).filter(([name, value]) => isCredentialName(name) && isPlainText(value));
  return [...key, ...named.map(([name]) => ["headers", name])];
}

/** An entry that can match nothing: whoever wrote it believes that it allows something. */
export function sessionsProblems(document: ConfigDocument, { allowHosts }: SessionsConfig): Diagnostic[] {
  return allowHosts.flatMap((entry, index) => {
    const hint = hostProblem(entry);
    return hint === undefined
      ? []
      : [
          document.report(["sessions", "allowHosts", index], {
            severity: "error",
            code: "wrong_value",
            message: `found ${JSON.stringify(entry.slice(0, 100))}; allowed is a name or an address, with or without a port, *.suffix, or a network such as 10.1.0.0/16`,
            hint,
          }),
        ];
  });
}

/** What is wrong with the entry; undefined if it can match something. */
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
  // What ends in a number would be read as an address, and is none.
  return HOST_NAME.test(host) && !/(?:^|\.)\d+\.?$/.test(host);
}

/** Rules for `cluster`, and for what only a cluster has a use for. */

const LIBRARY_FILE = "library";

/** A store that is a reference is judged when it is known; one that a program gives the hub besides is seen only there. */
export function clusterProblems(
  document: ConfigDocument,
  { cluster, store }: Pick<Config, "cluster" | "store">,
): Diagnostic[] {
  if (clusterOf(cluster) === undefined || (document.file === LIBRARY_FILE && store === undefined)) return [];
  if (store !== undefined && (/^postgres(?:ql)?:\/\//i.test(store) || findReferences(store).length > 0)) return [];
  const found = store === undefined ? "no store" : "a store that is a file of this machine";
  return [
    document.report(["cluster"], {
      severity: "error",
      code: "wrong_cluster",
      message: `found a cluster with ${found}; its nodes share their state in PostgreSQL`,
      hint: 'set "store" to a reference such as ${DATABASE_URL}, or to postgres://host/database',
    }),
  ];
}

/** No message holds a value. */
export function clusterWarnings(
  document: ConfigDocument,
  { cluster: entry, mcpServers }: Pick<Config, "cluster" | "mcpServers">,
): Diagnostic[] {
  const cluster = clusterOf(entry);
  if (cluster !== undefined) return clusterCredentialWarnings(document, typeof entry === "string", cluster);
  return Object.entries(mcpServers)
    .filter(([, { replicas = 1, url }]) => replicas > 1 && url === undefined)
    .map(([id]) =>
      document.report(["mcpServers", id, "replicas"], {
        severity: "warning",
        code: "unused_key",
        message: "replicas has no effect without a cluster",
        hint: 'set "cluster", or remove it',
      }),
    );
}

function clusterCredentialWarnings(
  document: ConfigDocument,
  isText: boolean,
  { url, credentials }: ClusterConfig,
): Diagnostic[] {
  const warn = (path: ConfigPath, message: string): Diagnostic =>
    document.report(path, {
      severity: "warning",
      code: "plain_credential",
      message,
      hint: "use a reference such as ${NAME} or secret://env/NAME",
    });
  const places: [string, ConfigPath][] =
    typeof url === "string"
      ? [[url, isText ? ["cluster"] : ["cluster", "url"]]]
      : url.map((each, index) => [each, ["cluster", "url", index]]);
  const inAddress = places.flatMap(([address, path]) => {
    const [, login] = /^[a-z]+:\/\/([^/?#]*)@/i.exec(address) ?? [];
    // NATS takes a token in the place of the user as well.
    const secret = login?.slice(login.indexOf(":") + 1);
    return secret !== undefined && isPlainText(secret) ? [warn(path, "a credential is written as plain text")] : [];
  });
  if (credentials === undefined || !credentials.includes("-----BEGIN")) return inAddress;
  return [...inAddress, warn(["cluster", "credentials"], "a credential is written as plain text")];
}

/** What works under `http` and should be changed all the same. No message holds a value. */
export function httpWarnings(document: ConfigDocument, http: HttpConfig): Diagnostic[] {
  const tokens = http.auth?.tokens ?? [];
  return tokens.flatMap(({ token }, index) =>
    isPlainText(token)
      ? [
          document.report(["http", "auth", "tokens", index, "token"], {
            severity: "warning",
            code: "plain_credential",
            message: "a credential is written as plain text",
            hint: "use a reference such as ${NAME} or secret://env/NAME",
          }),
        ]
      : [],
  );
}

const USE_A_REFERENCE = "use a reference such as ${NAME} or secret://env/NAME";

/** Keys and passwords of the store that are written out. No message holds a value. */
export function storeWarnings(
  document: ConfigDocument,
  { store, secrets }: Pick<Config, "store" | "secrets">,
): Diagnostic[] {
  const warnings: Diagnostic[] = [];
  const warn = (path: string[], message: string): void => {
    const report = { severity: "warning", code: "plain_credential", message, hint: USE_A_REFERENCE } as const;
    warnings.push(document.report(path, report));
  };
  const [, password] = /^[a-z]+:\/\/[^:/?#]*:([^/?#]*)@/i.exec(store ?? "") ?? [];
  if (password !== undefined && isPlainText(password)) warn(["store"], "a password is written as plain text");
  if (secrets.key !== undefined && isPlainText(secrets.key)) {
    warn(["secrets", "key"], "the key of the encrypted secrets is written as plain text");
  }
  return warnings;
}
