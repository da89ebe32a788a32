/** Plans what to deploy for a config, with warnings about what needs attention. */
import { isLoopback } from "../../base/network-address.ts";
import { toServerEntry, withoutDefaults } from "../../config/server-entry.ts";
import { clusterOf, ConfigSchema } from "../../model/config.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import type { LoadedConfig } from "../../model/loaded-config.ts";
import { sandboxImageOf, sandboxKindOf, type ServerSpec } from "../../model/server-spec.ts";
import { writeReference } from "../../secrets/secret-references.ts";
import { readSandbox } from "../../upstream/sandbox/sandbox-settings.ts";
import {
  type DeployedServer,
  type Deployment,
  envText,
  GATEWAY,
  plainTextNames,
  providersIn,
  replaceConfigSecrets,
  replaceServerSecrets,
  type SecretReplacement,
  textsOf,
  type Variable,
  VariableNames,
  variablesIn,
} from "./deployment.ts";

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
  } = withoutDefaultValues(config);
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

function withoutDefaultValues(config: LoadedConfig["config"]): JsonObject {
  return withoutDefaults({ ...config }, ConfigSchema.parse({}));
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
    const hosts = textsOf(value).flatMap(
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
