/** Servers that were added while a hub ran, as part of its config: the user's file wins for what it names. */
import { dirname, isAbsolute } from "node:path";
import { renderDiagnostic } from "../../config/diagnostics.ts";
import { withCage } from "../../config/effective-cage.ts";
import { userHome } from "../../config/find-config.ts";
import type { LoadedConfig } from "../../config/load-config.ts";
import { type EntryPlace, type ReadEntry, readSentEntry, readServerEntry } from "../../config/read-entry.ts";
import type { Clock } from "../../model/clock.ts";
import { asToolcribError, ToolcribError } from "../../model/errors.ts";
import type { JsonObject } from "../../model/json.ts";
import type { ServerSpec } from "../../model/server-spec.ts";
import type { Store, StoredServer, StoredServers } from "../../store/store.ts";
import type { LeftOut } from "./left-out.ts";
import type { ServerSecrets } from "./server-secrets.ts";
import { MemoryServers } from "./memory-servers.ts";
import { leaveTaken } from "./take-in.ts";

/** The dialect of servers that stand in no file. */
export const STORE_DIALECT = "store";
/** The source of a server that came through the library or a door. */
export const FROM_API = "api";

export interface AddedServersOptions {
  readonly store: Store | undefined;
  readonly clock: Clock;
  readonly home: string;
  readonly env: NodeJS.ProcessEnv;
  /** Whether entries of the home's mcp-servers.json are written into the store; not in a hub for one command. */
  readonly takesIn: boolean;
  readonly kept: ServerSecrets;
  readonly warn: (message: string) => void;
}

export class AddedServers {
  readonly stored: StoredServers;
  readonly #options: AddedServersOptions;
  readonly #place: string;
  #warned = new Set<string>();
  #leftOut: ReadonlyMap<string, LeftOut> = new Map();

  constructor(options: AddedServersOptions) {
    this.#options = options;
    this.stored = options.store?.servers ?? new MemoryServers(options.clock);
    this.#place = options.store?.place ?? "memory";
  }

  /** Those of the store that the config does not have, since it was last joined. */
  get leftOut(): ReadonlyMap<string, LeftOut> {
    return this.#leftOut;
  }

  /** The config with them, behind its own servers. An entry that makes no server is left out and warned about. */
  async join(config: LoadedConfig): Promise<LoadedConfig> {
    const warnings = new Set<string>();
    const warn = (message: string): void => void warnings.add(message);
    const { store, home, env, takesIn, kept } = this.#options;
    const left =
      store === undefined ? config.servers : await leaveTaken(config, store, { home, env, takesIn, kept, warn });
    const stored = await this.stored.list();
    const own = withoutNamesakes(left, stored, this.#place, warn);
    const named = new Map(own.map((spec) => [spec.id, spec]));
    const room = config.config.limits.servers - own.length;
    const added: ServerSpec[] = [];
    const leftOut = new Map<string, LeftOut>();
    for (const server of stored) {
      const namesake = named.get(server.id);
      if (namesake !== undefined) {
        warn(`The server "${server.id}" of the store is not used: ${namesake.origin.file} names one, which counts.`);
        continue;
      }
      try {
        const { spec } = readServerEntry(server.id, server.entry, this.#placeOf(server));
        if (added.length >= room) throw new ToolcribError("conflict", "limits.servers is reached.");
        added.push(withCage(spec, config));
      } catch (error) {
        const reason = asToolcribError(error).message;
        leftOut.set(server.id, { server, origin: this.#placeOf(server).origin, reason });
        warn(`The server "${server.id}" of the store is left out: ${reason}`);
      }
    }
    this.#leftOut = leftOut;
    // Once, however often the config is read, until there is no more reason for it.
    for (const message of warnings) if (!this.#warned.has(message)) this.#options.warn(message);
    this.#warned = warnings;
    if (added.length === 0 && own === config.servers) return config;
    return { ...config, servers: [...own, ...added] };
  }

  /** An entry that was sent. Throws `invalid_config` that says everything that is wrong with it. */
  check(id: string, sent: JsonObject, from: Pick<StoredServer, "source"> = { source: FROM_API }): ReadEntry {
    return readSentEntry(id, sent, this.#placeOf(from));
  }

  /** Warns of what is odd about an entry, besides the secrets in it, which have a rule of their own. */
  tellOf({ warnings }: ReadEntry): string[] {
    const odd = warnings.filter(({ code }) => code !== "plain_credential").map(renderDiagnostic);
    for (const message of odd) this.#options.warn(message);
    return odd;
  }

  #placeOf({ source }: Pick<StoredServer, "source">): EntryPlace {
    return {
      origin: { file: this.#place, dialect: STORE_DIALECT },
      baseDir: isAbsolute(source) ? dirname(source) : this.#options.home,
      userHome: userHome(this.#options.env),
    };
  }
}

/** A project config must not take the place of a server that the home has, wherever the home keeps it. */
function withoutNamesakes(
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
