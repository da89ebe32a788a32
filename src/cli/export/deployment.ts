/** A deployment before it is written for a platform, and the variables that replace its secrets. */
import { ToolcribError } from "../../model/errors.ts";
import { isJsonObject, type JsonObject, mapTexts, textsIn } from "../../model/json.ts";
import { isPlainText, isCredentialName } from "../../secrets/credential-names.ts";
import { maskTokens } from "../../secrets/mask.ts";
import { findPlaintextCredentials, replaceCredentials } from "../../secrets/plaintext-credentials.ts";
import { type Reference, writeReference, tryParseReferences, type Part } from "../../secrets/secret-references.ts";
import { isLoopback } from "../../base/network-address.ts";
import { toServerEntry, withoutDefaults } from "../../config/server-entry.ts";
import { clusterOf, ConfigSchema } from "../../model/config.ts";
import type { LoadedConfig } from "../../model/loaded-config.ts";
import { sandboxImageOf, sandboxKindOf, type ServerSpec } from "../../model/server-spec.ts";
import { readSandbox } from "../../upstream/sandbox/sandbox-settings.ts";

export interface Deployment {
  readonly image: string;
  readonly port: number;
  readonly replicas: number;
  readonly isCluster: boolean;
  /** Whether its home must survive a restart. */
  readonly keepsHome: boolean;
  readonly stopSeconds: number;
  /** Its config, without secrets and without paths of this machine. */
  readonly config: JsonObject;
  /** The variables that the config refers to. */
  readonly variables: readonly Variable[];
  /** Servers that run beside the gateway and are reached over HTTP. */
  readonly servers: readonly DeployedServer[];
}

export interface Variable {
  readonly name: string;
  /** Required variables are treated as secrets. */
  readonly needed: boolean;
}

export interface DeployedServer {
  readonly id: string;
  /** A unique DNS label. */
  readonly name: string;
  readonly image: string;
  /** Undefined for the image's own. */
  readonly entrypoint: string | undefined;
  readonly args: readonly EnvText[];
  readonly cwd: string | undefined;
  readonly env: Readonly<Record<string, EnvText>>;
  readonly port: number;
  readonly needsNetwork: boolean;
  /** Folders of this machine. */
  readonly read: readonly string[];
  readonly write: readonly string[];
  readonly memory: number | undefined;
  readonly cpus: number | undefined;
  readonly pids: number | undefined;
}

/** A text with variables in it. */
export type EnvText = readonly (string | Variable)[];

export interface DeploymentFile {
  readonly path: string;
  readonly text: string;
}

export const GATEWAY = "toolcrib";
/** User and group `node` of the image. */
export const GATEWAY_USER = 1000;
/** The user `nobody`, for other images. */
export const SERVER_USER = 65_534;
export const HOME = "/data";
export const CONFIG_DIR = "/config";
export const CONFIG_FILE = "toolcrib.json";
export const SERVE = ["toolcrib", "serve", "--config", `${CONFIG_DIR}/${CONFIG_FILE}`, "--log-format", "json"] as const;

export function variablesOf({ env, args }: DeployedServer): Variable[] {
  return [...Object.values(env), ...args].flatMap((text) => text.filter((part) => typeof part === "object"));
}

/** Every process has these, also in a container. */
const STANDARD = new Set(["HOME", "PATH", "USER", "LOGNAME", "SHELL", "LANG", "TERM", "TMPDIR", "PWD", "HOSTNAME"]);

function variableOf(reference: Reference): Variable | undefined {
  if (reference.kind === "secret") {
    return reference.provider === "env" ? { name: reference.path, needed: true } : undefined;
  }
  if (STANDARD.has(reference.name)) return undefined;
  return { name: reference.name, needed: reference.fallback === undefined };
}

/** Unique and sorted by name. A variable that is needed anywhere is needed. */
export function variablesIn(value: unknown): Variable[] {
  const found = new Map<string, Variable>();
  for (const text of textsIn(value)) {
    for (const part of partsOf(text)) {
      const variable = typeof part === "string" ? undefined : variableOf(part);
      if (variable !== undefined && found.get(variable.name)?.needed !== true) found.set(variable.name, variable);
    }
  }
  return [...found.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** A copy in which `write` replaces references; undefined keeps one. */
export function rewriteReferences(value: JsonObject, write: (variable: Variable) => string | undefined): JsonObject {
  // The copy of an object is one.
  return mapTexts(value, (text) => rewritten(text, write)) as JsonObject;
}

function rewritten(text: string, write: (variable: Variable) => string | undefined): string {
  const parts = partsOf(text);
  if (parts.every((part) => typeof part === "string")) return text;
  return parts
    .map((part) => {
      // Parsing removed the escapes.
      if (typeof part === "string") return part.replaceAll("${", "$${");
      const variable = variableOf(part);
      return (variable === undefined ? undefined : write(variable)) ?? part.text;
    })
    .join("");
}

/** For a program that reads its own environment. `lost` supplies a variable for references that have none. */
function envText(text: string, lost: (reference: Reference) => Variable): EnvText {
  return partsOf(text).map((part) => {
    if (typeof part === "string") return part;
    if (part.kind === "variable" && part.fallback !== undefined) return part.fallback;
    return variableOf(part) ?? lost(part);
  });
}

/** Providers of references, other than the environment. */
function providersIn(value: unknown): Set<string> {
  const providers = textsIn(value).flatMap((text) =>
    partsOf(text).flatMap((part) => (typeof part !== "string" && part.kind === "secret" ? [part.provider] : [])),
  );
  return new Set(providers.filter((provider) => provider !== "env"));
}

/** A malformed reference is plain text. */
function partsOf(text: string): Part[] {
  return tryParseReferences(text) ?? [text];
}

export interface SecretReplacement {
  readonly names: VariableNames;
  readonly warn: (message: string) => void;
}

/** For a server's entry. Throws `invalid_config` for secrets that no reference can replace. */
function replaceServerSecrets(id: string, entry: JsonObject, { names, warn }: SecretReplacement): JsonObject {
  const found = findPlaintextCredentials(entry);
  const fixed = found.find(({ replaceable }) => !replaceable);
  if (fixed !== undefined) {
    throw new ToolcribError("invalid_config", `${fixed.where} of the server "${id}" contains a secret in plain text.`, {
      hint: "Replace it with a reference such as ${NAME} or secret://env/NAME, and export again.",
    });
  }
  return replaceCredentials(entry, found, ({ path, where }) => {
    const [first, ...rest] = path;
    const name = names.next([id, ...(first === "env" ? rest : path)]);
    warn(`${where} of the server "${id}" contains a secret in plain text. It becomes the variable ${name}.`);
    return writeReference("env", name);
  });
}

/** Names of variables and headers whose values are exported as plain text, because they do not look like secrets. */
function plainTextNames({ env, headers }: JsonObject): string[] {
  return [env, headers].flatMap((texts) =>
    Object.entries(isJsonObject(texts) ? texts : {}).flatMap(([name, text]) =>
      typeof text === "string" && isPlainText(text) ? [name] : [],
    ),
  );
}

/** Config keys outside of servers whose values are always secret. */
const SECRET_KEYS = new Set(["token", "key", "apiKey", "clientSecret", "password"]);

/** For everything but servers. */
function replaceConfigSecrets(config: JsonObject, { names, warn }: SecretReplacement): JsonObject {
  const clean = (value: unknown, path: readonly (string | number)[]): unknown => {
    if (Array.isArray(value)) return value.map((item, index) => clean(item, [...path, index]));
    if (isJsonObject(value)) {
      return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, clean(item, [...path, key])]));
    }
    if (typeof value !== "string" || !isSecret(path.at(-1), value)) return value;
    const name = names.next(["toolcrib", ...path]);
    warn(`${path.join(".")} contains a secret in plain text. It becomes the variable ${name}.`);
    return writeReference("env", name);
  };
  return Object.fromEntries(Object.entries(config).map(([key, value]) => [key, clean(value, [key])]));
}

function isSecret(key: string | number | undefined, value: string): boolean {
  const named = typeof key === "string" && (SECRET_KEYS.has(key) || isCredentialName(key));
  // `cluster.credentials` may also be the path of a file.
  if (named && isPlainText(value) && (key !== "credentials" || value.includes("-----BEGIN"))) return true;
  return partsOf(value).some((part) => typeof part === "string" && maskTokens(part) !== part);
}

/** Unique names for the variables that replace secrets. */
export class VariableNames {
  readonly #taken: Set<string>;

  /** @param taken Names that are in use. */
  constructor(taken: Iterable<string>) {
    this.#taken = new Set(taken);
  }

  /** @param words The place of the secret. */
  next(words: readonly (string | number)[]): string {
    const plain = words
      .join("_")
      .toUpperCase()
      .replace(/[^A-Z0-9]+/g, "_")
      .replace(/^_+|_+$/g, "");
    const first = /^\d/.test(plain) ? `_${plain}` : plain;
    let name = first;
    for (let count = 2; this.#taken.has(name); count++) name = `${first}_${count}`;
    this.#taken.add(name);
    return name;
  }
}

// Plans what to deploy for a config, with warnings about what needs attention.

interface DeploymentOptions {
  readonly image: string;
  /** Of the gateway, in a cluster. */
  readonly replicas: number;
  /** Names that are used by the platform itself. */
  readonly taken: readonly string[];
  /** Whether the export includes NATS and PostgreSQL for a cluster. */
  readonly bringsEngines: boolean;
  readonly env: NodeJS.ProcessEnv;
  readonly warn: (message: string) => void;
}

const DEFAULT_PORT = 4700;
const TOKEN = "TOOLCRIB_TOKEN";
/** Extra time for the platform to end a program. */
const SPARE_SECONDS = 10;

export function planDeployment(loaded: LoadedConfig, options: DeploymentOptions): Deployment {
  const { image, warn } = options;
  const { config } = loaded;
  const isCluster = clusterOf(config.cluster) !== undefined;
  const names = new VariableNames(variablesIn([config, loaded.servers]).map(({ name }) => name));
  const taken = [GATEWAY, ...options.taken];
  const { entries, ofRoles, deployed } = portableServers(loaded.servers, { ...options, names, taken });
  const port = config.http.port === 0 ? DEFAULT_PORT : config.http.port;
  const {
    $schema: _schema,
    mcpServers: _servers,
    import: _import,
    roles: _roles,
    ...rest
  } = withoutDefaults({ ...config }, ConfigSchema.parse({}));
  const clean = replaceConfigSecrets(rest, { names, warn });
  const portable: JsonObject = {
    mcpServers: entries,
    ...clean,
    http: portableHttp(loaded, isJsonObject(clean["http"]) ? clean["http"] : {}, { port, warn }),
    ...rolesOf(loaded, ofRoles),
  };
  warnAboutFolders(loaded, warn);
  warnAboutProviders(portable, warn);
  if (!(isCluster && options.bringsEngines)) warnAboutEngines(portable, warn);
  if (isCluster && config.secrets.key === undefined) {
    warn("secrets.key is not set: data encrypted on one node cannot be read on the others.");
  }
  return {
    image,
    port,
    replicas: isCluster ? options.replicas : 1,
    isCluster,
    keepsHome: !isCluster,
    // Requests in progress finish first, then the calls of servers that move to other nodes.
    stopSeconds: Math.ceil((2 * config.http.limits.shutdownMs) / 1000) + SPARE_SECONDS,
    config: portable,
    variables: variablesIn(portable),
    servers: deployed,
  };
}

/** It listens on all addresses of its container, so clients need credentials. */
function portableHttp(
  { config: { http } }: LoadedConfig,
  written: JsonObject,
  { port, warn }: { readonly port: number; readonly warn: (message: string) => void },
): JsonObject {
  const token = { auth: { tokens: [{ token: writeReference("env", TOKEN) }] } };
  if (http.auth === undefined) warn(`http.auth is not set: clients must send the token ${TOKEN}.`);
  return {
    ...written,
    host: "0.0.0.0",
    port,
    allowedHosts: [...new Set([...http.allowedHosts, GATEWAY])],
    ...(http.auth === undefined ? token : {}),
  };
}

function rolesOf({ config }: LoadedConfig, ofRoles: ReadonlyMap<string, JsonObject>): JsonObject {
  const names = new Set([...Object.keys(config.roles), ...ofRoles.keys()]);
  if (names.size === 0) return {};
  const roles = [...names].map((role): [string, JsonObject] => {
    const { mcpServers: _own, ...rest } = config.roles[role] ?? {};
    const servers = ofRoles.get(role);
    return [role, { ...rest, ...(servers === undefined ? {} : { mcpServers: servers }) }];
  });
  return { roles: Object.fromEntries(roles) };
}

function warnAboutFolders({ config }: LoadedConfig, warn: (message: string) => void): void {
  const folders = [
    ["plugins", config.plugins],
    ["skills.dirs", config.skills.dirs],
    ["workspaceDir", config.workspaceDir === undefined ? [] : [config.workspaceDir]],
  ] as const;
  for (const [key, paths] of folders) {
    if (paths.length > 0)
      warn(`${key} refers to ${paths.join(", ")} on this machine. Mount it, or add it to the image.`);
  }
  if (config.store === undefined || config.store === "sqlite") {
    warn(
      "Servers and skills that were added to a running hub are in its home and are not exported. See toolcrib backup.",
    );
  }
}

function warnAboutEngines({ store, cluster }: JsonObject, warn: (message: string) => void): void {
  for (const [key, value] of Object.entries({ store, cluster })) {
    const hosts = textsIn(value).flatMap(
      (text) => /^[a-z]+:\/\/(?:[^/?#]*@)?(\[[^\]]*\]|[^/?#:,]+)/i.exec(text)?.[1] ?? [],
    );
    if (hosts.some(isLoopback))
      warn(`${key} is at this machine's loopback address, which is a different machine inside a container.`);
  }
}

const PROVIDERS: Readonly<Record<string, string>> = {
  file: "a file on this machine: mount it",
  keychain: "this machine's keychain, which a container does not have",
  exec: "a program, which the image does not have",
  user: "files in the home, one per user",
  store: "the store, which also needs its key",
  vault: "Vault: give the gateway its URL and a token",
  aws: "AWS: give the gateway a role that may read it",
  gcp: "Google Cloud: give the gateway an account that may read it",
};

function warnAboutProviders(config: JsonObject, warn: (message: string) => void): void {
  for (const provider of providersIn(config)) {
    warn(`References to secret://${provider} are looked up in ${PROVIDERS[provider] ?? provider}.`);
  }
}

interface PortableServers {
  /** For `mcpServers` of the gateway's config. */
  readonly entries: JsonObject;
  /** For `roles.<role>.mcpServers`, by role. */
  readonly ofRoles: ReadonlyMap<string, JsonObject>;
  readonly deployed: readonly DeployedServer[];
}

type Warn = (message: string) => void;

/** Programs in the image. */
const IMAGE_PROGRAMS = new Set(["node", "npx", "npm", "toolcrib"]);
/** Keys about a local program; a server beside the gateway has a URL instead. */
const PROCESS_KEYS = ["command", "args", "env", "cwd", "transport", "sandbox", "replicas"];

function portableServers(
  specs: readonly ServerSpec[],
  options: SecretReplacement & { readonly taken: Iterable<string>; readonly env: NodeJS.ProcessEnv },
): PortableServers {
  const { taken, env, warn, names: variables } = options;
  const beside = specs.filter(isHttpContainer);
  const names = serviceNames(
    beside.map(({ id }) => id),
    taken,
  );
  const nameOf = new Map(beside.map(({ id }, index) => [id, names[index] ?? id]));
  const deployed: DeployedServer[] = [];
  const entries: JsonObject = {};
  const ofRoles = new Map<string, JsonObject>();
  for (const spec of specs) {
    const entry = replaceServerSecrets(spec.id, toServerEntry(spec), options);
    const asTheyStand = plainTextNames(entry);
    if (asTheyStand.length > 0) {
      warn(
        `The server "${spec.id}" is exported with the plain values of ${asTheyStand.join(", ")}. Make sure that they are not secrets.`,
      );
    }
    const name = nameOf.get(spec.id);
    if (name === undefined) warnAboutProgram(spec, warn);
    const server = name === undefined ? undefined : deployedServer(spec, entry, { name, env, warn, names: variables });
    if (server !== undefined) deployed.push(server);
    const portable = server === undefined ? entry : addressOf(spec, entry, server);
    const [role] = spec.roles ?? [];
    if (spec.replaces === undefined || role === undefined) entries[spec.id] = portable;
    else {
      const { roles: _roles, ...own } = portable;
      ofRoles.set(role, { ...ofRoles.get(role), [spec.replaces]: own });
    }
  }
  return { entries, ofRoles, deployed };
}

function isHttpContainer({ sandbox }: ServerSpec): boolean {
  return typeof sandbox === "object" && sandboxImageOf(sandbox) !== undefined && sandbox.port !== undefined;
}

function deployedServer(
  { id, sandbox = "none", baseDir, cwd }: ServerSpec,
  entry: JsonObject,
  { name, env, warn, names }: SecretReplacement & { readonly name: string; readonly env: NodeJS.ProcessEnv },
): DeployedServer {
  const { image = "", port = 0, network, read, write, memory, cpus, pids } = readSandbox(sandbox, baseDir, env);
  const lost = (key: string): Variable => {
    const variable = { name: names.next([id, key]), needed: true };
    warn(
      `The server "${id}" gets ${key} from ${variable.name}, because references are not resolved outside the gateway.`,
    );
    return variable;
  };
  const texts = Object.entries((entry["env"] ?? {}) as Record<string, string>); // As the schema of entries says.
  const { command, args = [] } = entry as { command?: string; args?: string[] }; // As above.
  return {
    id,
    name,
    image,
    entrypoint: command,
    args: args.map((text, index) => envText(text, () => lost(`args_${index}`))),
    cwd,
    env: Object.fromEntries(texts.map(([key, text]) => [key, envText(text, () => lost(key))])),
    port,
    needsNetwork: network === "host",
    read: read.filter((path) => !write.includes(path)),
    write,
    memory,
    cpus,
    pids,
  };
}

function addressOf({ sandbox }: ServerSpec, entry: JsonObject, { name, port }: DeployedServer): JsonObject {
  const path = typeof sandbox === "object" ? (sandbox.path ?? "/mcp") : "/mcp";
  const rest = Object.fromEntries(Object.entries(entry).filter(([key]) => !PROCESS_KEYS.includes(key)));
  // Plain HTTP is fine on the platform's private network.
  return { url: `http://${name}:${port}${path}`, transport: "http", allowHttp: true, ...rest };
}

function warnAboutProgram({ id, command, cwd, url, sandbox, enabled }: ServerSpec, warn: Warn): void {
  if (!enabled) return;
  if (url !== undefined) {
    const { hostname } = URL.parse(url) ?? {};
    if (hostname !== undefined && isLoopback(hostname)) {
      warn(`The server "${id}" is at ${hostname}, which is a different machine inside a container.`);
    }
    return;
  }
  if (command !== undefined && !IMAGE_PROGRAMS.has(command)) {
    warn(
      `The server "${id}" runs ${command}, which the image does not have. Add it to the image, or give the server an image and a port.`,
    );
  }
  if (cwd !== undefined) warn(`The server "${id}" runs in ${cwd}, which is a folder of this machine. Mount it.`);
  const kind = sandbox === undefined ? "none" : sandboxKindOf(sandbox);
  if (kind !== "none") {
    warn(`The server "${id}" uses the sandbox ${kind}, which is not available inside the gateway's container.`);
  }
}

const MAX_SERVICE_NAME_LENGTH = 50;

/** One unique DNS label per id, in order, and none of `taken`. */
function serviceNames(ids: readonly string[], taken: Iterable<string>): string[] {
  const used = new Set(taken);
  return ids.map((id) => {
    const plain = `mcp-${id.toLowerCase()}`
      .replace(/[^a-z0-9]+/g, "-")
      .slice(0, MAX_SERVICE_NAME_LENGTH)
      .replace(/-+$/, "");
    let name = plain;
    for (let count = 2; used.has(name); count++) name = `${plain}-${count}`;
    used.add(name);
    return name;
  });
}
