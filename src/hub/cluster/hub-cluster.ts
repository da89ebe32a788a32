/** The cluster of a hub, opened from its config. A hub without a cluster loads nothing of it. */
import { isAbsolute, join } from "node:path";
import type { Clock } from "../../base/clock.ts";
import type { Cluster } from "../../cluster/cluster.ts";
import { type ClusterConfig, clusterOf } from "../../model/config.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { LoadedConfig } from "../../model/loaded-config.ts";
import { VERSION } from "../../model/version.ts";
import type { Redactor } from "../../secrets/redactor.ts";
import type { SealedSecrets } from "../../secrets/sealed-secrets.ts";
import type { Secrets } from "../../secrets/secrets.ts";
import type { Store } from "../../store/store.ts";
import { ClusteredServers } from "../../upstream/clustered/clustered-servers.ts";
import { sealedByConfig, SessionKeys } from "./routable-ids.ts";
import type { SharedState, SharedStateOptions } from "./shared-state.ts";

interface HubClusterParts {
  /** Whether this hub is a node; the hub of a command works alone. */
  readonly joins: boolean;
  readonly store: Store | undefined;
  readonly sealed: SealedSecrets | undefined;
  readonly secrets: Secrets;
  readonly redactor: Redactor;
  readonly clock: Clock;
  readonly warn: (message: string) => void;
}

/** Undefined where the config names no cluster, or the hub does not join it. */
export async function openHubCluster(loaded: LoadedConfig, parts: HubClusterParts): Promise<Cluster | undefined> {
  const entry = clusterOf(loaded.config.cluster);
  if (entry === undefined) return undefined;
  const { clock, warn } = parts;
  if (!parts.joins) {
    warn("The config names a cluster, but this hub does not join it. Use `toolcrib serve` to start a node.");
    return undefined;
  }
  if (parts.store?.kind !== "postgres") {
    const message = "`cluster` needs a `store` that all nodes share: a PostgreSQL database.";
    const hint =
      'Set `store` to "postgres://user@host/database", the same on all nodes, with the password by reference.';
    throw new ToolcribError("invalid_config", message, { hint });
  }
  const config = await resolveCluster(entry, loaded.baseDir, parts);
  // Loaded here: a hub without a cluster must not pay for it.
  const { openCluster } = await import("../../cluster/nats-cluster.ts");
  const facts = { version: VERSION, started: new Date(clock.now()).toISOString() };
  return openCluster({ config, secret: await clusterSecret(loaded, config.name, parts), clock, facts, warn });
}

/** It is in the shared store: whoever can read that counts as a node. */
async function clusterSecret(
  { config }: LoadedConfig,
  cluster: string,
  { store, sealed, clock, warn }: HubClusterParts,
): Promise<Uint8Array> {
  if (store === undefined) throw new Error("a cluster without a store");
  const { sessionIdleMs: idleMs } = config.http.limits;
  const keys = await SessionKeys.open({ cluster, store, sealed: sealedByConfig(config, sealed), idleMs, clock, warn });
  keys.close();
  return keys.secret;
}

/** Undefined for a hub that is not a node of a cluster, which loads nothing of it. */
export async function openSharedState({
  cluster,
  store,
  ...options
}: Omit<SharedStateOptions, "cluster" | "store"> & Partial<Pick<SharedStateOptions, "cluster" | "store">>): Promise<
  SharedState | undefined
> {
  if (cluster === undefined || store === undefined) return undefined;
  const { SharedState } = await import("./shared-state.ts");
  return SharedState.open({ ...options, cluster, store });
}

/** Undefined for a hub that is not a node. */
export function clusteredServers(
  cluster: Cluster | undefined,
  { config }: LoadedConfig,
  clock: Clock,
): ClusteredServers | undefined {
  const entry = clusterOf(config.cluster);
  if (cluster === undefined || entry === undefined) return undefined;
  return new ClusteredServers({ cluster, clock, leaseMs: entry.leaseMs, shutdownMs: config.http.limits.shutdownMs });
}

/** Resolves the references. Credentials go to the redactor first, before a message can quote them. */
export async function resolveCluster(
  config: ClusterConfig,
  baseDir: string,
  { secrets, redactor }: Pick<HubClusterParts, "secrets" | "redactor">,
): Promise<ClusterConfig> {
  const resolve = async (text: string): Promise<string> => (await secrets.resolve(text, { baseDir })).value;
  const urls = await Promise.all([config.url].flat().map(resolve));
  for (const url of urls) for (const credential of credentialsOf(url)) redactor.addCredential(credential);
  if (config.credentials === undefined) return { ...config, url: urls };
  const text = await resolve(config.credentials);
  const credentials = text.includes("-----BEGIN") || isAbsolute(text) ? text : join(baseDir, text);
  for (const line of credentials.split("\n")) if (isCredentialLine(line)) redactor.addCredential(line.trim());
  return { ...config, url: urls, credentials };
}

/** Password or token, as written in the address and decoded. */
function credentialsOf(address: string): string[] {
  const [, written = ""] = /^[a-z]+:\/\/([^/?#]*)@/i.exec(address) ?? [];
  if (written === "") return [];
  const [user = "", ...rest] = written.split(":");
  const password = rest.join(":");
  // An address with nothing but a user has a token in its place.
  const secret = password === "" ? user : password;
  let meant = secret;
  try {
    meant = decodeURIComponent(secret);
  } catch {}
  return [...new Set([secret, meant])];
}

/** Of a credentials file: the token and the seed, between lines of dashes. */
function isCredentialLine(line: string): boolean {
  return /^\s*[A-Za-z0-9_.-]{20,}\s*$/.test(line) && !line.includes("-----");
}

interface HubHealth {
  readonly problems: readonly string[];
  readonly cluster?: { readonly nodes: number; readonly nats: "up" | "down" };
  /** Absent where the store is a file, or there is none. */
  readonly store?: "up" | "down";
}

interface HealthSources {
  readonly cluster: Pick<Cluster, "isUp" | "nodes"> | undefined;
  readonly store: Pick<Store, "kind" | "trouble"> | undefined;
}

/** Whether the services that a hub relies on can be reached. It is public, so it names neither addresses nor nodes. */
export function hubHealth({ cluster, store }: HealthSources): HubHealth {
  const isCutOff = cluster?.isUp === false;
  const isStoreDown = store?.trouble !== undefined;
  return {
    problems: [
      ...(isCutOff ? ["NATS cannot be reached. Sessions and servers of other nodes are unavailable here."] : []),
      ...(isStoreDown
        ? ["The store cannot be reached. The hub works with what it has read, and nothing can be changed."]
        : []),
    ],
    ...(cluster === undefined ? {} : { cluster: { nodes: cluster.nodes().length, nats: isCutOff ? "down" : "up" } }),
    ...(store?.kind === "postgres" ? { store: isStoreDown ? "down" : "up" } : {}),
  };
}
