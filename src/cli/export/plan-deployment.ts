/** Works out of a config what is to run, and what has to be said about it. */
import type { LoadedConfig } from "../../config/load-config.ts";
import { withoutDefaults } from "../../config/spec-entry.ts";
import { clusterOf } from "../../model/cluster-config.ts";
import { ConfigSchema } from "../../model/config.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import { isLoopback } from "../../model/loopback.ts";
import { writeReference } from "../../secrets/references.ts";
import { type Deployment, GATEWAY } from "./deployment.ts";
import { portableServers } from "./portable-servers.ts";
import { providersIn, textsOf, variablesIn } from "./references.ts";
import { VariableNames } from "./variable-names.ts";
import { withoutPlainTexts } from "./without-secrets.ts";

export interface DeploymentOptions {
  readonly image: string;
  /** Of the gateway, in a cluster. */
  readonly replicas: number;
  /** Names that the platform's own parts have. */
  readonly taken: readonly string[];
  /** Whether a cluster's engines are among them. */
  readonly bringsEngines: boolean;
  readonly env: NodeJS.ProcessEnv;
  readonly warn: (message: string) => void;
}

const DEFAULT_PORT = 4700;
const TOKEN = "TOOLCRIB_TOKEN";
/** For what the platform does around the end of a program. */
const SPARE_SECONDS = 10;

export function planDeployment(loaded: LoadedConfig, options: DeploymentOptions): Deployment {
  const { image, warn } = options;
  const { config } = loaded;
  const isCluster = clusterOf(config.cluster) !== undefined;
  const names = new VariableNames(variablesIn([config, loaded.servers]).map(({ name }) => name));
  const taken = [GATEWAY, ...options.taken];
  const { entries, ofRoles, deployed } = portableServers(loaded.servers, { ...options, names, taken });
  const port = config.http.port === 0 ? DEFAULT_PORT : config.http.port;
  const { $schema: _schema, mcpServers: _servers, import: _import, roles: _roles, ...rest } = short(config);
  const clean = withoutPlainTexts(rest, { names, warn });
  const portable: JsonObject = {
    mcpServers: entries,
    ...clean,
    http: portableHttp(loaded, isJsonObject(clean["http"]) ? clean["http"] : {}, { port, warn }),
    ...rolesOf(loaded, ofRoles),
  };
  warnOfFolders(loaded, warn);
  warnOfProviders(portable, warn);
  if (!(isCluster && options.bringsEngines)) warnOfEngines(portable, warn);
  if (isCluster && config.secrets.key === undefined) {
    warn("secrets.key is not set: what is encrypted on one node cannot be read on the others.");
  }
  return {
    image,
    port,
    replicas: isCluster ? options.replicas : 1,
    isCluster,
    keepsHome: !isCluster,
    // Requests under way end first, then calls of the servers that are handed over.
    stopSeconds: Math.ceil((2 * config.http.limits.shutdownMs) / 1000) + SPARE_SECONDS,
    config: portable,
    variables: variablesIn(portable),
    servers: deployed,
  };
}

/** It has to listen at every address of its container, which nobody may enter without credentials. */
function portableHttp(
  { config: { http } }: LoadedConfig,
  written: JsonObject,
  { port, warn }: { readonly port: number; readonly warn: (message: string) => void },
): JsonObject {
  const token = { auth: { tokens: [{ token: writeReference("env", TOKEN) }] } };
  if (http.auth === undefined) warn(`http.auth is not set: clients have to bring the token ${TOKEN}.`);
  return {
    ...written,
    host: "0.0.0.0",
    port,
    allowedHosts: [...new Set([...http.allowedHosts, GATEWAY])],
    ...(http.auth === undefined ? token : {}),
  };
}

/** As short as a person would write it. */
function short(config: LoadedConfig["config"]): JsonObject {
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

function warnOfFolders({ config }: LoadedConfig, warn: (message: string) => void): void {
  const folders = [
    ["plugins", config.plugins],
    ["skills.dirs", config.skills.dirs],
    ["workspaceDir", config.workspaceDir === undefined ? [] : [config.workspaceDir]],
  ] as const;
  for (const [key, paths] of folders) {
    if (paths.length > 0) warn(`${key} names ${paths.join(", ")} on this machine: mount it, or put it into the image.`);
  }
  if (config.store === undefined || config.store === "sqlite") {
    warn(
      "Servers and skills that were added while a hub ran are in its home, and not part of this; see toolcrib backup.",
    );
  }
}

function warnOfEngines({ store, cluster }: JsonObject, warn: (message: string) => void): void {
  for (const [key, value] of Object.entries({ store, cluster })) {
    const hosts = textsOf(value).flatMap(
      (text) => /^[a-z]+:\/\/(?:[^/?#]*@)?(\[[^\]]*\]|[^/?#:,]+)/i.exec(text)?.[1] ?? [],
    );
    if (hosts.some(isLoopback))
      warn(`${key} is at this machine's loopback, which is another one inside of a container.`);
  }
}

const PROVIDERS: Readonly<Record<string, string>> = {
  file: "a file of this machine: mount it",
  keychain: "this machine's keychain, which a container does not have",
  exec: "a program, which the image does not have",
  user: "files of the home, one for each user",
  store: "the store; its key has to be there too",
  vault: "Vault: give the gateway its address and a token",
  aws: "AWS: give the gateway a role that may read it",
  gcp: "Google Cloud: give the gateway an account that may read it",
};

function warnOfProviders(config: JsonObject, warn: (message: string) => void): void {
  for (const provider of providersIn(config)) {
    warn(`A reference to secret://${provider} is looked up in ${PROVIDERS[provider] ?? provider}.`);
  }
}
