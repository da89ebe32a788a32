/** Servers that were added while a hub ran, as part of its config: the user's file wins for what it names. */
import { dirname, isAbsolute, join, resolve } from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { Clock } from "../../base/clock.ts";
import { renderDiagnostic } from "../../config/config-document.ts";
import { expandTilde, userHome } from "../../config/find-config.ts";
import { withServerDefaults } from "../../config/server-defaults.ts";
import {
  type EntryContext,
  type ReadEntry,
  readServerEntry,
  readSubmittedEntry,
  toServerEntry,
} from "../../config/server-entry.ts";
import type { ServerDetail } from "../../contract/server-schemas.ts";
import { asToolcribError, ToolcribError } from "../../model/errors.ts";
import type { JsonObject } from "../../model/json.ts";
import type { LoadedConfig } from "../../model/loaded-config.ts";
import type { ServerSpec, SpecOrigin } from "../../model/server-spec.ts";
import type { ServerInfo } from "../../model/server-state.ts";
import type { Redactor } from "../../secrets/redactor.ts";
import type { Store, StoredServer, StoredServers } from "../../store/store.ts";
import { etagOf, maskedEntry } from "./server-entry.ts";
import type { ServerSecrets } from "./server-secrets.ts";

/** The dialect of servers that are in no file. */
export const STORE_DIALECT = "store";
/** The source of a server that came through the library or a door. */
export const FROM_API = "api";

interface StoredServerConfigsOptions {
  readonly store: Store | undefined;
  readonly clock: Clock;
  readonly home: string;
  readonly env: NodeJS.ProcessEnv;
  /** Whether entries of the home's mcp-servers.json are written into the store; not in a hub for one command. */
  readonly importsFile: boolean;
  readonly secrets: ServerSecrets;
  readonly warn: (message: string) => void;
}

export class StoredServerConfigs {
  readonly entries: StoredServers;
  readonly #options: StoredServerConfigsOptions;
  readonly #place: string;
  /** By id: the config is joined with every change of anything, and an entry is read once. */
  readonly #read = new Map<string, KnownEntry>();
  #warned = new Set<string>();
  #unusable: ReadonlyMap<string, UnusableServer> = new Map();

  constructor(options: StoredServerConfigsOptions) {
    this.#options = options;
    this.entries = options.store?.servers ?? new MemoryServers(options.clock);
    this.#place = options.store?.place ?? "memory";
  }

  /** Those of the store that the config does not have, since it was last joined. */
  get unusable(): ReadonlyMap<string, UnusableServer> {
    return this.#unusable;
  }

  /** The config with them, behind its own servers. An entry that makes no server is left out and warned about. */
  async join(config: LoadedConfig): Promise<LoadedConfig> {
    const warnings = new Set<string>();
    const warn = (message: string): void => void warnings.add(message);
    const { store, home, env, importsFile: takesIn, secrets } = this.#options;
    const left =
      store === undefined
        ? config.servers
        : await importServersFile(config, store, { home, env, importsFile: takesIn, secrets, warn });
    const stored = await this.entries.list();
    const own = withoutStoredIds(left, stored, this.#place, warn);
    const named = new Map(own.map((spec) => [spec.id, spec]));
    const room = config.config.limits.servers - own.length;
    const added: ServerSpec[] = [];
    const unusable = new Map<string, UnusableServer>();
    for (const server of stored) {
      const namesake = named.get(server.id);
      if (namesake !== undefined) {
        warn(`The server "${server.id}" of the store is not used: ${namesake.origin.file} names one, which counts.`);
        continue;
      }
      try {
        const spec = this.#specOf(server);
        if (added.length >= room) throw new ToolcribError("conflict", "limits.servers is reached.");
        added.push(withServerDefaults(spec, config));
      } catch (error) {
        const reason = asToolcribError(error).message;
        unusable.set(server.id, { server, origin: this.#placeOf(server).origin, reason });
        warn(`The server "${server.id}" of the store is left out: ${reason}`);
      }
    }
    this.#unusable = unusable;
    const ids = new Set(stored.map(({ id }) => id));
    for (const id of this.#read.keys()) if (!ids.has(id)) this.#read.delete(id);
    // Once, however often the config is read, until there is no more reason for it.
    for (const message of warnings) if (!this.#warned.has(message)) this.#options.warn(message);
    this.#warned = warnings;
    if (added.length === 0 && own === config.servers) return config;
    return { ...config, servers: [...own, ...added] };
  }

  /** An entry that was sent. Throws `invalid_config` that says everything that is wrong with it. */
  check(id: string, sent: JsonObject, { source }: Pick<StoredServer, "source"> = { source: FROM_API }): ReadEntry {
    const read = readSubmittedEntry(id, sent, this.#placeOf({ source }));
    this.#read.set(id, { source, entry: read.entry, spec: read.spec });
    return read;
  }

  /** Warns of what is odd about an entry, besides the secrets in it, which have a rule of their own. */
  warnAbout({ warnings }: ReadEntry): string[] {
    const odd = warnings.filter(({ code }) => code !== "plain_credential").map(renderDiagnostic);
    for (const message of odd) this.#options.warn(message);
    return odd;
  }

  #specOf({ id, source, entry }: StoredServer): ServerSpec {
    const known = this.#read.get(id);
    if (known?.source === source && isDeepStrictEqual(known.entry, entry)) return known.spec;
    const { spec } = readServerEntry(id, entry, this.#placeOf({ source }));
    this.#read.set(id, { source, entry, spec });
    return spec;
  }

  #placeOf({ source }: Pick<StoredServer, "source">): EntryContext {
    return {
      origin: { file: this.#place, dialect: STORE_DIALECT },
      baseDir: isAbsolute(source) ? dirname(source) : this.#options.home,
      userHome: userHome(this.#options.env),
    };
  }
}

interface KnownEntry extends Pick<StoredServer, "source" | "entry"> {
  readonly spec: ServerSpec;
}

/** A project config must not take the place of a server that the home has, wherever the home keeps it. */
function withoutStoredIds(
  servers: LoadedConfig["servers"],
  stored: readonly StoredServer[],
  place: string,
  warn: (message: string) => void,
): LoadedConfig["servers"] {
  const ids = new Set(stored.map(({ id }) => id));
  const isTaken = (spec: ServerSpec): boolean => spec.fromProject === true && ids.has(spec.id);
  const taken = servers.filter(isTaken);
  for (const { id, origin } of taken) {
    warn(`The server "${id}" of ${origin.file} is not used: ${place} has one of that id, which counts.`);
  }
  return taken.length === 0 ? servers : servers.filter((spec) => !isTaken(spec));
}

type ImportServersOptions = Pick<StoredServerConfigsOptions, "home" | "env" | "importsFile" | "secrets" | "warn">;

/**
 * The servers of the config without those that the store answers for. Each entry of the home's `etc/mcp-servers.json` goes
 * into the store once, and from then on the store's entry counts: a server that was removed there does not come back.
 */
async function importServersFile(
  config: LoadedConfig,
  store: Store,
  options: ImportServersOptions,
): Promise<LoadedConfig["servers"]> {
  const file = join(options.home, "etc", "mcp-servers.json");
  if (isNamedByConfig(file, config, options.env)) return config.servers;
  const left: ServerSpec[] = [];
  for (const spec of config.servers) {
    const isOurs = spec.origin.file === file && spec.replaces === undefined;
    if (!isOurs || !(await isImported(spec, file, store, options))) left.push(spec);
  }
  return left.length === config.servers.length ? config.servers : left;
}

/** A file that is named as a config or an import is the user's own. */
function isNamedByConfig(
  file: string,
  { file: primary, config, baseDir }: LoadedConfig,
  env: NodeJS.ProcessEnv,
): boolean {
  return primary === file || config.import.some((item) => resolve(baseDir, expandTilde(item, userHome(env))) === file);
}

async function isImported(
  spec: ServerSpec,
  file: string,
  { servers, settings }: Store,
  { importsFile, secrets, warn }: ImportServersOptions,
): Promise<boolean> {
  const mark = `mcp-servers.json:${spec.id}`;
  if ((await settings.get(mark)) !== undefined) return true;
  if ((await servers.get(spec.id)) === undefined) {
    if (!importsFile) return false;
    try {
      const { entry, undo } = await secrets.secure(spec.id, toServerEntry(spec));
      try {
        await servers.insert({ id: spec.id, entry, source: file });
      } catch (error) {
        await undo();
        // Another hub that starts now was quicker.
        if (!(error instanceof ToolcribError) || error.code !== "conflict") throw error;
      }
    } catch (error) {
      if (!(error instanceof ToolcribError)) throw error;
      warn(
        `The server "${spec.id}" of ${file} is not imported into the store, and used from the file: ${error.message}`,
      );
      return false;
    }
  }
  if (importsFile) await settings.setOnce(mark, file);
  return true;
}

/** A server of the store that cannot be used: it is shown with the reason, and can be changed or removed. */
interface UnusableServer {
  readonly server: StoredServer;
  readonly origin: SpecOrigin;
  readonly reason: string;
}

export function unusableInfo({ server: { id, entry }, origin, reason }: UnusableServer): ServerInfo {
  return {
    ...{ id, name: id, origin, lastError: reason, hint: "Change its entry, or remove it." },
    ...{ state: "failed", status: "error", transport: entry["url"] === undefined ? "stdio" : "http" },
    ...{
      capabilities: {},
      toolCount: 0,
      serverName: null,
      serverVersion: null,
      connectedAt: null,
      era: null,
      protocolVersion: null,
    },
    ...{ tags: [], warnings: [] },
  };
}

export function unusableDetail(left: UnusableServer, redactor: Redactor): ServerDetail {
  const { entry, revision } = left.server;
  const { tags: _tags, warnings: _warnings, ...info } = redactor.maskAll(unusableInfo(left));
  return {
    ...info,
    ...{ tags: [], warnings: [], origin: { ...left.origin }, from: "store", editable: true },
    enabled: entry["enabled"] !== false,
    autoConnect: entry["autoConnect"] !== false,
    start: entry["start"] === "lazy" ? "lazy" : "eager",
    config: maskedEntry(entry, redactor),
    etag: etagOf(entry, revision),
    ...{ stderr: [], history: [], resourceCount: 0, promptCount: 0 },
  };
}

export function unusableError({ server: { id }, reason }: UnusableServer): ToolcribError {
  return new ToolcribError("invalid_config", `The server "${id}" cannot be used: ${reason}`, {
    hint: "Change its entry, or remove it.",
  });
}

/** Servers of a hub without a store: they live as long as it does. */
class MemoryServers implements StoredServers {
  readonly #servers = new Map<string, StoredServer>();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async list(): Promise<StoredServer[]> {
    return [...this.#servers.values()].toSorted((one, other) => (one.id < other.id ? -1 : 1));
  }

  async get(id: string): Promise<StoredServer | undefined> {
    return this.#servers.get(id);
  }

  async insert({ id, entry, source }: Pick<StoredServer, "id" | "entry" | "source">): Promise<StoredServer> {
    if (this.#servers.has(id)) throw new ToolcribError("conflict", `There is a server "${id}" already.`);
    const now = this.#now();
    return this.#put({ id, entry: structuredClone(entry), source, createdAt: now, updatedAt: now, revision: 1 });
  }

  async update(id: string, entry: JsonObject, revision?: number): Promise<StoredServer> {
    const before = this.#require(id, revision);
    const after = { ...before, entry: structuredClone(entry), updatedAt: this.#now(), revision: before.revision + 1 };
    return this.#put(after);
  }

  async remove(id: string, revision?: number): Promise<void> {
    this.#require(id, revision);
    this.#servers.delete(id);
  }

  #require(id: string, revision: number | undefined): StoredServer {
    const server = this.#servers.get(id);
    if (server === undefined) throw new ToolcribError("not_found", `There is no server "${id}".`);
    if (revision !== undefined && revision !== server.revision) {
      throw new ToolcribError("conflict", `The server "${id}" was changed meanwhile.`);
    }
    return server;
  }

  #put(server: StoredServer): StoredServer {
    this.#servers.set(server.id, server);
    return server;
  }

  #now(): string {
    return new Date(this.#clock.now()).toISOString();
  }
}
