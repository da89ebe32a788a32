/** The servers of a hub as its callers use them: looked at, connected, tried, added, changed and removed. */
import { isDeepStrictEqual } from "node:util";
import type { Clock } from "../../base/clock.ts";
import type { Emitter } from "../../base/emitter.ts";
import { findServerLine } from "../../config/edit-config.ts";
import type { LoadedConfig } from "../../config/load-config.ts";
import { withSandbox } from "../../config/sandbox-defaults.ts";
import { toServerEntry } from "../../config/server-entry.ts";
import type { ServerDetail } from "../../contract/server-schemas.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { JsonObject } from "../../model/json.ts";
import type { ServerSpec } from "../../model/server-spec.ts";
import type { ServerInfo } from "../../model/server-state.ts";
import type { Redactor } from "../../secrets/redactor.ts";
import type { StoredServer } from "../../store/store.ts";
import type { ConnectionDeps } from "../../upstream/connection-deps.ts";
import type { ServerConnection } from "../../upstream/server-connection.ts";
import type { StderrLog } from "../../upstream/stdio/stderr-log.ts";
import type { HubEvents } from "../hub-events.ts";
import type { ServerConnections } from "./server-connections.ts";
import { etagOf, maskedEntry, matchesEtag, mergeEntry, refuseMask } from "./server-entry.ts";
import type { ServerSecrets } from "./server-secrets.ts";
import {
  FROM_API,
  STORE_DIALECT,
  type StoredServerConfigs,
  unusableDetail,
  unusableError,
  unusableInfo,
} from "./stored-servers.ts";
import { type TestedServer, testServer } from "./test-server.ts";

interface ServerRegistryOptions {
  readonly servers: ServerConnections;
  readonly deps: ConnectionDeps;
  readonly added: StoredServerConfigs;
  readonly kept: ServerSecrets;
  readonly history: ServerHistory;
  readonly stderr: StderrLog;
  readonly config: () => LoadedConfig;
  /** Resolves when what was written is taken up and new servers are ready, have failed, or take too long. */
  readonly change: (write: () => Promise<WrittenChange | undefined>) => Promise<void>;
}

export class ServerRegistry {
  readonly #options: ServerRegistryOptions;
  readonly #changes: ServerChanges;

  constructor(options: ServerRegistryOptions) {
    this.#options = options;
    this.#changes = new ServerChanges(options);
  }

  infos(): ServerInfo[] {
    const { servers, added } = this.#options;
    return [...servers.list().map((connection) => connection.info()), ...[...added.leftOut.values()].map(unusableInfo)];
  }

  async detail(id: string): Promise<ServerDetail | undefined> {
    const { servers, added, config, stderr, history, deps } = this.#options;
    const connection = servers.get(id);
    const left = added.leftOut.get(id);
    if (connection === undefined) return left && unusableDetail(left, deps.redactor);
    const spec = config().servers.find((each) => each.id === id) ?? connection.spec;
    const stored = spec.origin.dialect === STORE_DIALECT ? await added.stored.get(id) : undefined;
    return serverDetail({
      connection,
      spec,
      stored,
      config: config(),
      stderr: stderr.lines(id),
      history: history.of(id),
      redactor: deps.redactor,
    });
  }

  async connect(id: string, user: string | undefined): Promise<ServerInfo> {
    const connection = this.#connection(id);
    await connection.wish?.(true);
    if (user !== undefined && connection.connectUser !== undefined) return connection.connectUser(user);
    await connection.connect();
    return connection.info();
  }

  async disconnect(id: string): Promise<ServerInfo> {
    const connection = this.#connection(id);
    await connection.disconnect();
    return connection.info();
  }

  async refresh(id: string | undefined): Promise<void> {
    const connections = id === undefined ? this.#options.servers.list() : [this.#connection(id)];
    await Promise.all(connections.map((connection) => connection.refresh()));
  }

  async add(id: string, config: JsonObject): Promise<ServerInfo> {
    return this.#told(id, await this.#changes.add(id, config));
  }

  async update(id: string, updates: JsonObject, options?: ChangeOptions): Promise<ServerInfo> {
    return this.#told(id, await this.#changes.update(id, updates, options));
  }

  remove(id: string, options?: ChangeOptions): Promise<void> {
    return this.#changes.remove(id, options);
  }

  async test(id: string | undefined, config: JsonObject, signal: AbortSignal | undefined): Promise<TestedServer> {
    refuseMask(config);
    const { added, kept, deps } = this.#options;
    const { spec, entry } = added.check(id ?? "test", config);
    kept.refusePlain(entry);
    return testServer(withSandbox(spec, this.#options.config()), deps, signal);
  }

  #told(id: string, odd: readonly string[]): ServerInfo {
    const info = this.#connection(id).info();
    return { ...info, warnings: [...info.warnings, ...odd] };
  }

  #connection(id: string): ServerConnection {
    const { servers, added } = this.#options;
    const connection = servers.get(id);
    if (connection !== undefined) return connection;
    const left = added.leftOut.get(id);
    if (left !== undefined) throw unusableError(left);
    const ids = servers.list().map((each) => each.id);
    throw new ToolcribError("not_found", `There is no server "${id}".`, {
      hint: `Known servers: ${ids.join(", ") || "none"}.`,
    });
  }
}

/** Adding, changing and removing servers while the hub runs: written down first, then taken up like a changed config. */

/** What was written, if it cannot be taken up, and what is to be done when it was. */
export interface WrittenChange {
  undo(): Promise<void>;
  done?(): Promise<void>;
}

interface ServerChangesOptions {
  readonly added: StoredServerConfigs;
  readonly kept: ServerSecrets;
  readonly config: () => LoadedConfig;
  /** Runs `write` in turn with reloads and takes up what it wrote; undefined for nothing to take up. */
  readonly change: (write: () => Promise<WrittenChange | undefined>) => Promise<void>;
}

export interface ChangeOptions {
  /** Only if the entry still has this tag. */
  readonly ifMatch?: string;
}

class ServerChanges {
  readonly #options: ServerChangesOptions;

  constructor(options: ServerChangesOptions) {
    this.#options = options;
  }

  /** Gives what is odd about the entry. */
  async add(id: string, given: JsonObject): Promise<string[]> {
    refuseMask(given);
    const { added, kept, config, change } = this.#options;
    let odd: string[] = [];
    await change(async () => {
      await this.#refuseTaken(id);
      const { servers, config: settings } = config();
      if (servers.length >= settings.limits.servers) {
        throw new ToolcribError(
          "conflict",
          `There are ${servers.length} servers, as many as \`limits.servers\` allows.`,
          {
            hint: "Remove one, or raise the limit in the config.",
            details: { limit: settings.limits.servers },
          },
        );
      }
      const read = added.check(id, given);
      const { entry, undo } = await kept.secure(id, read.entry);
      await added.stored.insert({ id, entry, source: FROM_API }).catch(async (error: unknown) => {
        await undo();
        throw error;
      });
      odd = added.tellOf(read);
      return {
        async undo() {
          await added.stored.remove(id);
          await undo();
        },
      };
    });
    return odd;
  }

  /** Gives what is odd about the entry. */
  async update(id: string, updates: JsonObject, { ifMatch }: ChangeOptions = {}): Promise<string[]> {
    refuseMask(updates);
    const { added, kept, change } = this.#options;
    let odd: string[] = [];
    await change(async () => {
      const before = await this.#editable(id, ifMatch);
      if (updates["id"] !== undefined && updates["id"] !== id) {
        throw new ToolcribError("invalid_arguments", "The id of a server cannot be changed.", {
          hint: "Add it under the other id, and remove this one.",
        });
      }
      const read = added.check(id, mergeEntry(before.entry, updates), before);
      odd = added.tellOf(read);
      if (isDeepStrictEqual(read.entry, before.entry)) return undefined;
      const { entry, undo } = await kept.secure(id, read.entry);
      await added.stored.update(id, entry, before.revision).catch(async (error: unknown) => {
        await undo();
        throw error;
      });
      return {
        async undo() {
          await added.stored.update(id, before.entry);
          await undo();
        },
        done: async () => kept.release(before.entry, await this.#texts()),
      };
    });
    return odd;
  }

  async remove(id: string, { ifMatch }: ChangeOptions = {}): Promise<void> {
    const { added, kept, change } = this.#options;
    await change(async () => {
      const before = await this.#editable(id, ifMatch);
      await added.stored.remove(id, before.revision);
      return {
        async undo() {
          await added.stored.insert(before);
        },
        done: async () => kept.release(before.entry, await this.#texts()),
      };
    });
  }

  async #refuseTaken(id: string): Promise<void> {
    const spec = this.#options.config().servers.find((each) => each.id === id);
    const isTaken = spec !== undefined || (await this.#options.added.stored.get(id)) !== undefined;
    if (!isTaken) return;
    throw new ToolcribError("conflict", `There is a server "${id}" already.`, {
      hint: "Choose another id, or change that server.",
      details: { id, ...(spec === undefined ? {} : { file: spec.origin.file }) },
    });
  }

  async #editable(id: string, ifMatch: string | undefined): Promise<StoredServer> {
    const { added, config } = this.#options;
    const origin = config().servers.find((each) => each.id === id)?.origin;
    if (origin !== undefined && origin.dialect !== STORE_DIALECT) throw await configFileError(id, origin.file);
    const stored = await added.stored.get(id);
    if (stored === undefined) {
      throw new ToolcribError("not_found", `There is no server "${id}".`, {
        hint: "List the servers to see their ids.",
      });
    }
    const actual = etagOf(stored.entry, stored.revision);
    if (ifMatch !== undefined && !matchesEtag(ifMatch, actual)) {
      throw new ToolcribError("conflict", `The server "${id}" was changed meanwhile.`, {
        hint: "Read it again, and change what you find.",
        details: { expected: ifMatch, actual },
      });
    }
    return stored;
  }

  /** Everything that may refer to a secret. */
  async #texts(): Promise<string> {
    const { added, config } = this.#options;
    const { config: settings, servers } = config();
    return JSON.stringify([settings, servers, await added.stored.list()]);
  }
}

async function configFileError(id: string, file: string): Promise<ToolcribError> {
  const line = await findServerLine(file, id);
  const place = line === undefined ? file : `${file}:${line}`;
  return new ToolcribError("conflict", `The server "${id}" is written in ${file}, and changed only there.`, {
    hint: `Change it at ${place}. Connecting and disconnecting work here too.`,
    details: { id, file, line },
  });
}

/** One server with everything that an operator wants to know of it. */

interface DetailParts {
  readonly connection: ServerConnection;
  /** As the config has it now. */
  readonly spec: ServerSpec;
  /** Only of a server that the store holds and no file names. */
  readonly stored: StoredServer | undefined;
  readonly config: LoadedConfig;
  readonly stderr: readonly string[];
  readonly history: readonly ServerEvent[];
  readonly redactor: Redactor;
}

function serverDetail(facts: DetailParts): ServerDetail {
  const { connection, spec, stored, config, stderr, history, redactor } = facts;
  const { resources, templates, prompts } = connection.definitions();
  const shown = maskedEntry(stored?.entry ?? toServerEntry(spec), redactor);
  const detail = {
    ...connection.info(),
    from: originKind(spec, config),
    editable: stored !== undefined,
    enabled: spec.enabled,
    autoConnect: spec.autoConnect,
    config: shown,
    stderr: [...stderr],
    history: [...history],
    resourceCount: resources.length + templates.length,
    promptCount: prompts.length,
  };
  const { tags, warnings, origin, ...rest } = redactor.maskAll(detail);
  // Of a stored entry the whole counts, of another one what is shown: nobody can change that here.
  const etag = stored === undefined ? etagOf(shown) : etagOf(stored.entry, stored.revision);
  return { ...rest, tags: [...tags], warnings: [...warnings], origin: { ...origin }, etag };
}

function originKind({ origin }: ServerSpec, { file, inCode }: LoadedConfig): ServerDetail["from"] {
  if (origin.dialect === STORE_DIALECT) return "store";
  if (origin.dialect === "skill") return "skill";
  if (inCode && origin.file === "library") return "code";
  return origin.file === file ? "file" : "import";
}

const MAX_EVENTS = 50;

interface ServerEvent {
  /** ISO time. */
  readonly at: string;
  readonly state: ServerInfo["state"];
  readonly reason?: string;
}

/** The last changes of state of each server, for whoever wants to know why one is red. Reasons are masked already. */
export class ServerHistory {
  readonly #events = new Map<string, ServerEvent[]>();
  readonly #stops: readonly (() => void)[];

  constructor(events: Emitter<HubEvents>, clock: Clock, onForget: (id: string) => void = () => {}) {
    this.#stops = [
      events.on("server", ({ info }) => this.#add(info, new Date(clock.now()).toISOString())),
      events.on("reload", ({ report }) => {
        for (const id of report.removed) {
          this.#events.delete(id);
          onForget(id);
        }
      }),
    ];
  }

  of(id: string): ServerEvent[] {
    return [...(this.#events.get(id) ?? [])];
  }

  stop(): void {
    for (const stop of this.#stops) stop();
  }

  #add({ id, state, lastError }: ServerInfo, at: string): void {
    // A removed server ends its last calls first, and nobody asks for it any more.
    if (state === "closed") return;
    const events = this.#events.get(id) ?? [];
    const isDown = state === "failed" || state === "restarting" || state === "degraded";
    events.push({ at, state, ...(isDown && lastError !== null ? { reason: lastError } : {}) });
    if (events.length > MAX_EVENTS) events.shift();
    this.#events.set(id, events);
  }
}
