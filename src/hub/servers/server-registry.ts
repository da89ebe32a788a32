/** The servers of a hub as its callers use them: looked at, connected, tried, added, changed and removed. */
import { isDeepStrictEqual } from "node:util";
import type { Clock } from "../../base/clock.ts";
import type { Emitter } from "../../base/emitter.ts";
import { findServerLine } from "../../config/edit-config.ts";
import { withServerDefaults } from "../../config/server-defaults.ts";
import { type ReadEntry, toServerEntry } from "../../config/server-entry.ts";
import type { CheckedInput, OutputOf } from "../../contract/operations.ts";
import type { ServerDetail, TestedServer } from "../../contract/server-schemas.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { JsonObject } from "../../model/json.ts";
import type { LoadedConfig } from "../../model/loaded-config.ts";
import type { LogMessage } from "../../model/protocol.ts";
import { isLazy, type ServerSpec } from "../../model/server-spec.ts";
import type { ServerInfo } from "../../model/server-state.ts";
import type { StoredServer } from "../../store/store.ts";
import type { ConnectionDeps } from "../../upstream/connection-deps.ts";
import type { ServerConnection } from "../../upstream/server-connection.ts";
import { processUsage } from "../../upstream/stdio/process-table.ts";
import type { ServerLog } from "../../upstream/stdio/server-log.ts";
import type { CurrentWiring } from "../create/wiring.ts";
import type { HubEvents } from "../hub-events.ts";
import type { Reloader, WrittenChange } from "../reload/reloader.ts";
import type { ServerConnections } from "./server-connections.ts";
import { etagOf, maskedEntry, matchesEtag, mergeEntry, refuseMask, refuseOtherId } from "./server-entry.ts";
import type { ServerSecrets } from "./server-secrets.ts";
import {
  FROM_API,
  STORE_DIALECT,
  type StoredServerConfigs,
  unusableDetail,
  unusableError,
  unusableInfo,
} from "./stored-servers.ts";
import { testServer } from "./test-server.ts";

interface ServerRegistryOptions {
  readonly connections: ServerConnections;
  readonly deps: ConnectionDeps;
  readonly stored: StoredServerConfigs;
  readonly secrets: ServerSecrets;
  readonly stderr: ServerLog;
  readonly current: CurrentWiring;
  readonly reloader: Reloader;
  readonly events: Emitter<HubEvents>;
  readonly clock: Clock;
  readonly settled: () => Promise<void>;
  readonly listed: () => Promise<void>;
}

export interface ChangeOptions {
  /** Only if the entry still has this tag. */
  readonly ifMatch?: string;
}

interface StoredChange extends ChangeOptions {
  readonly id: string;
  /** Null removes it. */
  readonly updates: JsonObject | null;
}

interface StoredPreview {
  readonly before: JsonObject;
  readonly after: JsonObject;
  readonly spec: ServerSpec;
  readonly etag: string;
}

export class ServerRegistry {
  readonly #options: ServerRegistryOptions;
  readonly #history: ServerHistory;
  readonly #stopLog: () => void;

  constructor(options: ServerRegistryOptions) {
    this.#options = options;
    this.#history = new ServerHistory(options.events, options.clock, (id) => options.stderr.forget(id));
    this.#stopLog = options.events.on("log", ({ server, message, user, session }) => {
      // Others must not see those of a user's or a session's own connection.
      if (user === undefined && session === undefined) options.stderr.note(server, message.level, logText(message));
    });
  }

  close(): void {
    this.#history.stop();
    this.#stopLog();
  }

  /** Resolves when the servers that connect by themselves were ready or had failed once, or took too long. */
  settled(): Promise<void> {
    return this.#options.settled();
  }

  /** Resolves when each of them is listed, as it is or as it was when it last ran, or has failed once, or took too long. */
  listed(): Promise<void> {
    return this.#options.listed();
  }

  list(): ServerInfo[] {
    const { connections, stored } = this.#options;
    const unusable = [...stored.unusable.values()].map(unusableInfo);
    return [...connections.list().map((connection) => connection.info()), ...unusable];
  }

  /** How a server is written down, masked, and whether it is to run. */
  entryOf(id: string): Pick<ServerDetail, "enabled" | "autoConnect" | "config"> {
    const { connections, stored, current, deps } = this.#options;
    const spec = current.config.servers.find((each) => each.id === id) ?? connections.get(id)?.spec;
    if (spec !== undefined) {
      const { enabled, autoConnect } = spec;
      return { enabled, autoConnect, config: maskedEntry(toServerEntry(spec), deps.redactor) };
    }
    const unusable = stored.unusable.get(id);
    const {
      enabled = false,
      autoConnect = false,
      config = {},
    } = unusable ? unusableDetail(unusable, deps.redactor) : {};
    return { enabled, autoConnect, config };
  }

  /** One server with everything that an operator wants to know of it. */
  async get(id: string): Promise<ServerDetail | undefined> {
    const { connections, stored, current, stderr, deps } = this.#options;
    const connection = connections.get(id);
    const unusable = stored.unusable.get(id);
    if (connection === undefined) return unusable && unusableDetail(unusable, deps.redactor);
    const spec = current.config.servers.find((each) => each.id === id) ?? connection.spec;
    const server = spec.origin.dialect === STORE_DIALECT ? await stored.entries.get(id) : undefined;
    const { resources, templates, prompts } = connection.definitions();
    const entry = maskedEntry(server?.entry ?? toServerEntry(spec), deps.redactor);
    const { tags, warnings, origin, ...rest } = deps.redactor.maskAll({
      ...connection.info(),
      from: originKind(spec, current.config),
      editable: server !== undefined,
      enabled: spec.enabled,
      autoConnect: spec.autoConnect,
      start: isLazy(spec) ? ("lazy" as const) : ("eager" as const),
      config: entry,
      stderr: [...stderr.lines(id)],
      history: this.#history.of(id),
      resourceCount: resources.length + templates.length,
      promptCount: prompts.length,
    });
    // Of a stored entry the whole counts, of another one what is shown: it cannot be changed here.
    const etag = server === undefined ? etagOf(entry) : etagOf(server.entry, server.revision);
    return { ...rest, tags: [...tags], warnings: [...warnings], origin: { ...origin }, etag };
  }

  /** The memory and CPU of a server's programs, and how often they were started again. */
  async process(id: string): Promise<OutputOf<"getServerProcess">> {
    const { connectedAt } = this.#connection(id).info();
    const usage = await processUsage(this.#options.deps.pids.pidsOf(id));
    return { serverId: id, connectedAt, restarts: this.#history.restartsOf(id), process: usage ?? null };
  }

  /** The output of its programs and its log messages, masked, the oldest first. */
  log({ serverId, after, level, q, limit }: CheckedInput<"getServerLog">): OutputOf<"getServerLog"> {
    const { stderr, deps } = this.#options;
    this.#connection(serverId);
    const text = q?.toLowerCase() ?? "";
    const lines = deps.redactor
      .maskAll(stderr.entries(serverId).filter(({ seq }) => seq > (after ?? 0)))
      .filter((line) => (level === undefined || line.level === level) && line.text.toLowerCase().includes(text));
    return { serverId, lines: lines.slice(-limit), last: stderr.entries(serverId).at(-1)?.seq ?? after ?? 0 };
  }

  async connect(id: string, { user }: { readonly user?: string } = {}): Promise<ServerInfo> {
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

  async refresh(id?: string): Promise<void> {
    const connections = id === undefined ? this.#options.connections.list() : [this.#connection(id)];
    await Promise.all(connections.map((connection) => connection.refresh()));
  }

  /** The entry is stored first, then applied like a changed config; what cannot be applied is taken back. */
  async add(id: string, given: JsonObject): Promise<ServerInfo> {
    refuseMask(given);
    const { stored, secrets, reloader } = this.#options;
    let warnings: readonly string[] = [];
    await reloader.change(async () => {
      this.#refuseTaken(id);
      const read = stored.check(id, given);
      const { entry, undo } = await secrets.secure(id, read.entry);
      await orUndo(stored.entries.insert({ id, entry, source: FROM_API }), undo);
      warnings = stored.warnAbout(read);
      return {
        async undo() {
          await stored.entries.remove(id);
          await undo();
        },
      };
    });
    return this.#changed(id, warnings);
  }

  async update(id: string, updates: JsonObject, { ifMatch }: ChangeOptions = {}): Promise<ServerInfo> {
    let warnings: readonly string[] = [];
    await this.#options.reloader.change(async () => {
      const { before, read } = await this.#updated(id, updates, ifMatch);
      warnings = this.#options.stored.warnAbout(read);
      return this.#writeUpdate(before, read);
    });
    return this.#changed(id, warnings);
  }

  /** A server of the store as updates would leave it, and as it is. Writes nothing; refuses what `update` would. */
  async preview(id: string, updates: JsonObject): Promise<StoredPreview> {
    const { secrets, current } = this.#options;
    const { before, read } = await this.#updated(id, updates, undefined);
    if (!isDeepStrictEqual(read.entry, before.entry)) secrets.refusePlain(read.entry);
    const etag = etagOf(before.entry, before.revision);
    return { before: before.entry, after: read.entry, spec: withServerDefaults(read.spec, current.config), etag };
  }

  async remove(id: string, { ifMatch }: ChangeOptions = {}): Promise<void> {
    await this.#options.reloader.change(async () => this.#writeRemoval(await this.#editable(id, ifMatch)));
  }

  /** Updates and removes several as one step: if one fails, none is changed. */
  async changeAll(changes: readonly StoredChange[]): Promise<void> {
    await this.#options.reloader.change(async () => {
      const written: WrittenChange[] = [];
      const undo = async (): Promise<void> => {
        for (const each of written.toReversed()) await each.undo();
      };
      for (const change of changes) {
        await orUndo(
          this.#writeChange(change).then((each) => each && written.push(each)),
          undo,
        );
      }
      if (written.length === 0) return undefined;
      return {
        undo,
        async done() {
          for (const each of written) await each.done?.();
        },
      };
    });
  }

  /** Connects once with an entry that is not stored. */
  async test(id: string | undefined, config: JsonObject, signal?: AbortSignal): Promise<TestedServer> {
    refuseMask(config);
    const { stored, secrets, deps, current } = this.#options;
    const { spec, entry } = stored.check(id ?? "test", config);
    secrets.refusePlain(entry);
    return testServer(withServerDefaults(spec, current.config), deps, signal);
  }

  async #updated(
    id: string,
    updates: JsonObject,
    ifMatch: string | undefined,
  ): Promise<{ readonly before: StoredServer; readonly read: ReadEntry }> {
    refuseMask(updates);
    const before = await this.#editable(id, ifMatch);
    refuseOtherId(id, updates);
    return { before, read: this.#options.stored.check(id, mergeEntry(before.entry, updates), before) };
  }

  async #writeChange({ id, updates, ifMatch }: StoredChange): Promise<WrittenChange | undefined> {
    if (updates === null) return this.#writeRemoval(await this.#editable(id, ifMatch));
    const { before, read } = await this.#updated(id, updates, ifMatch);
    this.#options.stored.warnAbout(read);
    return this.#writeUpdate(before, read);
  }

  async #writeUpdate(before: StoredServer, read: ReadEntry): Promise<WrittenChange | undefined> {
    const { stored, secrets } = this.#options;
    const { id } = before;
    if (isDeepStrictEqual(read.entry, before.entry)) return undefined;
    const { entry, undo } = await secrets.secure(id, read.entry);
    await orUndo(stored.entries.update(id, entry, before.revision), undo);
    return {
      async undo() {
        await stored.entries.update(id, before.entry);
        await undo();
      },
      done: () => this.#releaseSecrets(before),
    };
  }

  async #writeRemoval(before: StoredServer): Promise<WrittenChange> {
    const { entries } = this.#options.stored;
    await entries.remove(before.id, before.revision);
    return {
      async undo() {
        await entries.insert(before);
      },
      done: () => this.#releaseSecrets(before),
    };
  }

  #changed(id: string, warnings: readonly string[]): ServerInfo {
    const info = this.#connection(id).info();
    return { ...info, warnings: [...info.warnings, ...warnings] };
  }

  #connection(id: string): ServerConnection {
    const { connections, stored } = this.#options;
    const connection = connections.get(id);
    if (connection !== undefined) return connection;
    const unusable = stored.unusable.get(id);
    if (unusable !== undefined) throw unusableError(unusable);
    const ids = connections.list().map((each) => each.id);
    throw new ToolcribError("not_found", `There is no server "${id}".`, {
      hint: `Known servers: ${ids.join(", ") || "none"}.`,
    });
  }

  /** A server that another process has stored since the config was joined is refused when this one is stored. */
  #refuseTaken(id: string): void {
    const { servers, config } = this.#options.current.config;
    const spec = servers.find((each) => each.id === id);
    if (spec !== undefined || this.#options.stored.unusable.has(id)) {
      throw new ToolcribError("conflict", `There is a server "${id}" already.`, {
        hint: "Choose another id, or change that server.",
        details: { id, ...(spec === undefined ? {} : { file: spec.origin.file }) },
      });
    }
    const limit = config.limits.servers;
    if (servers.length < limit) return;
    throw new ToolcribError("conflict", `There are ${servers.length} servers, as many as \`limits.servers\` allows.`, {
      hint: "Remove one, or raise the limit in the config.",
      details: { limit },
    });
  }

  async #editable(id: string, ifMatch: string | undefined): Promise<StoredServer> {
    const { stored, current } = this.#options;
    const origin = current.config.servers.find((each) => each.id === id)?.origin;
    if (origin !== undefined && origin.dialect !== STORE_DIALECT) throw await configFileError(id, origin.file);
    const server = await stored.entries.get(id);
    if (server === undefined) {
      throw new ToolcribError("not_found", `There is no server "${id}".`, {
        hint: "List the servers to see their ids.",
      });
    }
    const actual = etagOf(server.entry, server.revision);
    if (ifMatch !== undefined && !matchesEtag(ifMatch, actual)) {
      throw new ToolcribError("conflict", `The server "${id}" was changed meanwhile.`, {
        hint: "Read it again, and change what you find.",
        details: { expected: ifMatch, actual },
      });
    }
    return server;
  }

  /** Of an entry that no longer counts, except those that anything else refers to. */
  async #releaseSecrets({ entry }: StoredServer): Promise<void> {
    const { stored, secrets, current } = this.#options;
    const { config, servers } = current.config;
    await secrets.release(entry, JSON.stringify([config, servers, await stored.entries.list()]));
  }
}

async function orUndo(writing: Promise<unknown>, undo: () => Promise<void>): Promise<void> {
  try {
    await writing;
  } catch (error) {
    await undo();
    throw error;
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

function originKind({ origin }: ServerSpec, { file, inCode }: LoadedConfig): ServerDetail["from"] {
  if (origin.dialect === STORE_DIALECT) return "store";
  if (origin.dialect === "skill") return "skill";
  if (inCode && origin.file === "library") return "code";
  return origin.file === file ? "file" : "import";
}

function logText({ logger, data }: LogMessage): string {
  const text = typeof data === "string" ? data : JSON.stringify(data ?? "");
  return typeof logger === "string" ? `${logger}: ${text}` : text;
}

const MAX_EVENTS = 50;

interface ServerEvent {
  /** ISO time. */
  readonly at: string;
  readonly state: ServerInfo["state"];
  readonly reason?: string;
}

/** The last changes of state of each server, to show why one failed. Reasons are masked already. */
class ServerHistory {
  readonly #events = new Map<string, ServerEvent[]>();
  readonly #restarts = new Map<string, number>();
  readonly #stops: readonly (() => void)[];

  constructor(events: Emitter<HubEvents>, clock: Clock, onForget: (id: string) => void) {
    this.#stops = [
      events.on("server", ({ info }) => this.#add(info, new Date(clock.now()).toISOString())),
      events.on("reload", ({ report }) => {
        for (const id of report.removed) {
          this.#events.delete(id);
          this.#restarts.delete(id);
          onForget(id);
        }
      }),
    ];
  }

  of(id: string): ServerEvent[] {
    return [...(this.#events.get(id) ?? [])];
  }

  restartsOf(id: string): number {
    return this.#restarts.get(id) ?? 0;
  }

  stop(): void {
    for (const stop of this.#stops) stop();
  }

  #add({ id, state, lastError, progress }: ServerInfo, at: string): void {
    // A removed server ends its last calls first, and its history is no longer needed.
    if (state === "closed") return;
    const events = this.#events.get(id) ?? [];
    if (state === "restarting" && events.at(-1)?.state !== state) this.#restarts.set(id, this.restartsOf(id) + 1);
    const isDown = state === "failed" || state === "restarting" || state === "degraded";
    const reason = isDown ? (lastError ?? undefined) : progress;
    events.push({ at, state, ...(reason === undefined ? {} : { reason }) });
    if (events.length > MAX_EVENTS) events.shift();
    this.#events.set(id, events);
  }
}
