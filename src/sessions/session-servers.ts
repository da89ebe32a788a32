/** The servers of one session: which there are, and what becomes of them when the client names others. */
import { Emitter } from "../base/emitter.ts";
import { type NamedServer, NamePattern } from "../catalog/naming.ts";
import { asSentence, ToolcribError } from "../model/errors.ts";
import type { Result } from "../model/protocol.ts";
import type { ServerInfo, ServerState } from "../model/server-state.ts";
import type { Definitions, Source, Use, UseContext } from "../model/source.ts";
import type { Redactor } from "../secrets/redactor.ts";
import { LiteralSecrets } from "../secrets/secrets.ts";
import type { ConnectionDeps } from "../upstream/connection-deps.ts";
import { Connection } from "../upstream/connection.ts";
import { InMemoryEras } from "../upstream/era-memory.ts";
import { addressPolicy } from "../upstream/http/address-policy.ts";
import { baseId, readSessionServers, type SessionServerEntry } from "./read-session-servers.ts";
import type { LeftOutServer, MountingSession, SessionHost, SessionNotice, SessionServers } from "./session-parts.ts";

/** More child processes than this are worth a word. */
const WARN_ABOVE_PROGRAMS = 5;

interface SessionServerSetOptions {
  readonly host: SessionHost;
  readonly session: MountingSession;
  /** The end of its servers' ids. */
  readonly suffix: string;
  readonly redactor: Redactor;
  readonly tell: (notice: SessionNotice) => void;
  readonly events: Omit<SessionServerEvents, "tell">;
}

interface ServerChange {
  readonly removed: readonly SessionServer[];
  readonly added: readonly SessionServer[];
}

export class SessionServerSet {
  readonly #options: SessionServerSetOptions;
  /** In the client's order. */
  #servers: readonly SessionServer[] = [];
  #leftOut: readonly LeftOutServer[] = [];
  /** With the id that the server had. */
  readonly #ending = new Map<Promise<void>, string>();
  /** One for all attempts of this session: nothing about a client's servers is written down. */
  readonly #eras = new InMemoryEras();

  constructor(options: SessionServerSetOptions) {
    this.#options = options;
  }

  get list(): readonly SessionServer[] {
    return this.#servers;
  }

  /** Of what was named last. */
  get leftOut(): readonly LeftOutServer[] {
    return this.#leftOut;
  }

  /**
   * Takes other servers up, without connecting them yet: those whose entry is the same stay as they are.
   * `start` of those that are new is up to the caller.
   */
  change(given: SessionServers): ServerChange {
    const leftOut: LeftOutServer[] = [];
    const wanted = this.#permitted(this.#read(given, leftOut), leftOut);
    this.#leftOut = leftOut;
    const present = new Map(this.#servers.map((server) => [server.name, server]));
    const added: SessionServer[] = [];
    const ending = new Set(this.#ending.values());
    const taken = new Set([...ending, ...this.#servers.map(({ id }) => id)]);
    this.#servers = wanted.map((entry) => {
      const before = present.get(entry.name);
      if (before !== undefined && before.entry.key === entry.key) return before;
      // It starts when the one before it has ended, but not when others have.
      const keeps = before !== undefined && !ending.has(before.id);
      const server = this.#make(entry, keeps ? before.id : this.#freeId(entry.name, taken));
      added.push(server);
      return server;
    });
    const kept = new Set(this.#servers);
    const removed = [...present.values()].filter((server) => !kept.has(server));
    return { removed, added };
  }

  /** Resolves when its process is gone. Never rejects. */
  end(server: SessionServer): Promise<void> {
    const { stderr } = this.#options.host.deps;
    const ended = server
      .close()
      .catch(() => {})
      .then(() => stderr.forget(server.id));
    this.#ending.set(ended, server.id);
    void ended.then(() => this.#ending.delete(ended));
    return ended;
  }

  async close(): Promise<void> {
    const servers = this.#servers;
    this.#servers = [];
    for (const server of servers) void this.end(server);
    await Promise.all(this.#ending.keys());
  }

  #read(given: SessionServers, leftOut: LeftOutServer[]): SessionServerEntry[] {
    const { session, tell } = this.#options;
    const { context, mayRunCommands, fromProgram } = session;
    const { serverDefaults, allowReferences, toolTimeout } = this.#options.host.settings();
    return readSessionServers(given, {
      workspaceDir: context.workspaceDir,
      mayRunCommands,
      references: fromProgram ? "any" : new Set(mayRunCommands ? allowReferences : []),
      serverDefaults,
      toolTimeout,
      tell,
      onLeftOut: (entry) => leftOut.push(entry),
    });
  }

  #permitted(read: readonly SessionServerEntry[], leftOut: LeftOutServer[]): readonly SessionServerEntry[] {
    const { host, session, tell } = this.#options;
    const most = Math.max(0, Math.min(host.settings().servers, session.limits.servers ?? Infinity));
    for (const { name } of read.slice(most)) {
      leftOut.push({ name, reason: `a session may bring ${most} servers` });
      const message = `The server "${name}" is left out: a session may bring ${most} servers.`;
      tell({ level: "warning", server: name, message, hint: "`limits.sessionServers` in the config sets the limit." });
    }
    const permitted = read.slice(0, most);
    const isProgram = ({ spec }: Pick<SessionServerEntry, "spec">): boolean => spec.command !== undefined;
    const programs = permitted.filter(isProgram).length;
    // Those that this session has now are counted with the others.
    const elsewhere = host.sources.programs - this.#servers.filter(({ entry }) => isProgram(entry)).length;
    if (programs > 0 && programs + elsewhere > WARN_ABOVE_PROGRAMS) {
      const all = elsewhere === 0 ? "" : ` With those of other sessions there are ${programs + elsewhere}.`;
      const message = `This session starts ${programs} programs for its servers.${all} This takes memory and time.`;
      tell({ level: "warning", message });
    }
    return permitted;
  }

  /** Updates the public names after servers of the hub came or went. True if a name changed. */
  rename(): boolean {
    const renamed = this.#servers.filter((server) => {
      const before = server.shownAs;
      server.shownAs = publicServerName(server.name, this.#options.host.catalog.basis);
      return server.shownAs !== before;
    });
    for (const server of renamed) this.#tellName(server);
    return renamed.length > 0;
  }

  #make(entry: SessionServerEntry, id: string): SessionServer {
    const { host, tell, events } = this.#options;
    const { name } = entry;
    const shown = publicServerName(name, host.catalog.basis);
    const server = new SessionServer({ entry, id, shownAs: shown }, this.#deps(entry), { ...events, tell });
    if (shown !== name) this.#tellName(server);
    return server;
  }

  #tellName({ name, shownAs: shown }: SessionServer): void {
    const message =
      shown === name
        ? `The hub has no server "${name}" any more. Names of the session's server begin with "${name}" again.`
        : `The hub has a server "${name}" as well. Names of the session's server begin with "${shown}".`;
    this.#options.tell({ level: "info", server: name, message });
  }

  #freeId(name: string, taken: Set<string>): string {
    const { suffix } = this.#options;
    const plain = baseId(name);
    let id = `${plain}@${suffix}`;
    // Where two have one pattern of names, the smaller id has the plain ones: `_` comes after `@`, so that those stay.
    for (let count = 2; taken.has(id); count++) id = `${plain}_${count}@${suffix}`;
    taken.add(id);
    return id;
  }

  #deps({ name, resolvesReferences, wire }: SessionServerEntry): ConnectionDeps {
    const { host, session, redactor } = this.#options;
    const { clock, env, pids, stderr, clientVersion, secrets, logLevel, graceMs, sandboxes } = host.deps;
    const warned = new Set<string>();
    return {
      clock,
      env,
      pids,
      stderr,
      clientVersion,
      eras: this.#eras,
      redactor,
      secrets: resolvesReferences ? secrets : new LiteralSecrets({ env, clock, redactor }),
      hubSession: session.context,
      offers: session.context.client.capabilities,
      reach: addressPolicy({
        allowHosts: host.settings().allowHosts,
        localClient: session.mayRunCommands,
        isGuarded: (port) => !session.fromProgram && host.isOwnPort(port),
        onLoopback: (hostname) => {
          if (warned.has(hostname)) return;
          warned.add(hostname);
          host.warn(`The server "${name}" of a session is at ${hostname}, which is the machine that Toolcrib runs on.`);
        },
      }),
      logLevel,
      graceMs,
      sandboxes,
      openWire: wire,
    };
  }
}

interface SessionServerEvents {
  readonly tell: (notice: SessionNotice) => void;
  readonly onState: (info: ServerInfo) => void;
  readonly onReady: (connection: Connection) => void;
  /** It has other tools than before. */
  readonly onCount: () => void;
  readonly onResource: (source: string, uri: string) => void;
  readonly onOddity: (warning: { readonly server: string; readonly message: string }) => void;
  /** One of its capabilities is used. */
  readonly onUse: () => void;
}

interface SessionServerFacts {
  readonly entry: SessionServerEntry;
  readonly id: string;
  readonly shownAs: string;
}

/** The last report: `late`: it takes long. `absent`: it did not connect. `lost`: it disconnected. */
type Reported = "nothing" | "late" | "absent" | "up" | "lost" | "gone";

/** One server of a session, from its first connection attempt to its end, with the notices about it. */
export class SessionServer {
  readonly entry: SessionServerEntry;
  readonly connection: Connection;
  readonly source: CappedSource;
  /** Its part of public names. */
  shownAs: string;
  readonly #events: SessionServerEvents;
  readonly #stops: (() => void)[];
  #first: Promise<void> = Promise.resolve();
  #told: Reported = "nothing";
  #toldLeftOut = 0;
  #toldRefused = false;
  /** A warning about lists that comes a second time, as one of the connection. */
  #toldOfLists: string | undefined;

  constructor({ entry, id, shownAs }: SessionServerFacts, deps: ConnectionDeps, events: SessionServerEvents) {
    this.entry = entry;
    this.shownAs = shownAs;
    this.#events = events;
    this.connection = new Connection({ ...entry.spec, id }, deps);
    this.source = new CappedSource(this.connection, {
      onCount: events.onCount,
      onRun: (error) => this.#ran(error),
      onUse: events.onUse,
    });
    this.#stops = [
      this.connection.on("state", ({ state }) => this.#follow(state)),
      this.connection.on("resource-updated", ({ uri }) => events.onResource(this.id, uri)),
      this.connection.on("list-warning", (text) => {
        this.#toldOfLists = text;
        this.#tell("warning", `has a problem: ${text}`);
      }),
      // What is odd and does no harm is for the operator alone, who gets what the client is told anyway.
      this.connection.on("warning", (message) => {
        if (message !== this.#toldOfLists) events.onOddity({ server: this.name, message });
        this.#toldOfLists = undefined;
      }),
    ];
  }

  get id(): string {
    return this.connection.id;
  }

  get name(): string {
    return this.entry.name;
  }

  /** Resolves when the first attempt has come to an end, whichever. */
  get first(): Promise<void> {
    return this.#first;
  }

  /** @param after What has to end before, such as the process that it takes the place of. */
  start(after: Promise<void>): void {
    this.#first = after.then(() => this.connection.connect());
  }

  /** Another try for one that has failed; the others stay as they are. */
  retry(): void {
    if (this.connection.state.kind !== "failed") return;
    this.#told = "nothing";
    this.start(Promise.resolve());
  }

  /** Reports that it is still connecting. */
  reportLate(waitedMs: number): void {
    const { kind } = this.connection.state;
    const { progress } = this.connection.info();
    if (this.#told !== "nothing" || (kind !== "connecting" && kind !== "idle")) return;
    this.#told = "late";
    const what = progress === undefined ? "" : ` (${progress})`;
    this.#tell(
      "info",
      `is still connecting after ${Math.round(waitedMs / 100) / 10} s${what}. Its tools are added when it is ready.`,
    );
  }

  setCap(cap: number): void {
    this.source.setCap(cap);
    const { leftOut, count } = this.source;
    if (leftOut === this.#toldLeftOut) return;
    this.#toldLeftOut = leftOut;
    if (leftOut === 0) return;
    this.#tell("warning", `offers ${count} tools. ${leftOut} of them are left out: the session has reached its limit.`);
  }

  async close(): Promise<void> {
    for (const stop of this.#stops) stop();
    this.source.close();
    await this.connection.close();
  }

  #follow(state: ServerState): void {
    this.#events.onState(this.connection.info());
    if (state.kind === "ready") {
      this.#events.onReady(this.connection);
      if (this.#told === "late" || this.#told === "absent") {
        const offersNone = this.connection.info().toolCount === 0;
        this.#tell("info", `is now connected. ${offersNone ? "It offers no tools." : "Its tools are available."}`);
      } else if (this.#told === "lost" || this.#told === "gone") this.#tell("info", "is back.");
      this.#told = "up";
    } else if (state.kind === "restarting" || state.kind === "failed") {
      this.#down(state);
    }
  }

  #down({ kind, reason, hint }: Extract<ServerState, { kind: "restarting" | "failed" }>): void {
    const again = kind === "restarting" ? " It is retried." : "";
    if (this.#told === "up") {
      this.#told = kind === "failed" ? "gone" : "lost";
      const meanwhile =
        kind === "failed"
          ? "Its tools return an error."
          : "It is being restarted. Until then its tools return an error.";
      this.#tell("warning", `was lost: ${asSentence(reason)} ${meanwhile}`, hint);
    } else if (this.#told === "nothing" || this.#told === "late") {
      this.#told = "absent";
      this.#tell("warning", `could not be connected: ${asSentence(reason)}${again}`, hint);
    } else if (kind === "failed" && this.#told !== "gone") {
      this.#told = "gone";
      this.#tell("warning", `is not tried again: ${asSentence(reason)}`, hint);
    }
  }

  /** The error of each use itself says it too; but who is to send other credentials is the client, not the model. */
  #ran(error: unknown): void {
    const status = error instanceof ToolcribError ? error.details?.["status"] : undefined;
    if (status !== 401 && status !== 403) {
      if (error === undefined) this.#toldRefused = false;
      return;
    }
    if (this.#toldRefused) return;
    this.#toldRefused = true;
    this.#tell(
      "warning",
      `answered ${status}: its credentials are no longer accepted, and its tools return an error.`,
      "Send the server again with new credentials.",
    );
  }

  #tell(level: SessionNotice["level"], what: string, hint?: string): void {
    const message = `The server "${this.name}" ${what}`;
    this.#events.tell({ level, server: this.name, message, hint });
  }
}

interface CappedSourceEvents {
  /** Called before other listeners get changed definitions, so that the caps are right by then. */
  readonly onCount: () => void;
  /** A use begins. */
  readonly onUse: () => void;
  /** A use has ended; undefined if it went well. */
  readonly onRun: (error: unknown) => void;
}

/** A server as the session's catalog sees it: with no more tools than the session may bring. */
class CappedSource implements Source {
  readonly id: string;
  readonly kind = "server";
  readonly #source: Source;
  readonly #onRun: CappedSourceEvents["onRun"];
  readonly #onUse: CappedSourceEvents["onUse"];
  readonly #events = new Emitter<{ change: undefined }>();
  readonly #stop: () => void;
  #cap = Infinity;
  /** The last result, for the same definitions and cap. */
  #cut: { readonly of: Definitions; readonly cap: number; readonly definitions: Definitions } | undefined;

  constructor(source: Source, { onCount, onRun, onUse }: CappedSourceEvents) {
    this.id = source.id;
    this.#onRun = onRun;
    this.#onUse = onUse;
    this.#source = source;
    this.#stop = source.onChange(() => {
      onCount();
      this.#events.emit("change", undefined);
    });
  }

  /** How many tools it has, whatever the cap. */
  get count(): number {
    return this.#source.definitions().tools.length;
  }

  /** How many of them are left out. */
  get leftOut(): number {
    return Math.max(0, this.count - this.#cap);
  }

  setCap(cap: number): void {
    const before = this.leftOut;
    this.#cap = cap;
    if (this.leftOut !== before) this.#events.emit("change", undefined);
  }

  definitions(): Definitions {
    const of = this.#source.definitions();
    if (this.leftOut === 0) return of;
    if (this.#cut?.of !== of || this.#cut.cap !== this.#cap) {
      this.#cut = { of, cap: this.#cap, definitions: { ...of, tools: of.tools.slice(0, this.#cap) } };
    }
    return this.#cut.definitions;
  }

  async run(use: Use, context: UseContext): Promise<Result> {
    this.#onUse();
    try {
      const result = await this.#source.run(use, context);
      this.#onRun(undefined);
      return result;
    } catch (error) {
      this.#onRun(error);
      throw error;
    } finally {
      this.#onUse();
    }
  }

  endSession(sessionId: string): void {
    this.#source.endSession?.(sessionId);
  }

  onChange(listener: () => void): () => void {
    return this.#events.on("change", listener);
  }

  close(): void {
    this.#stop();
    this.#events.clear();
  }
}

const SERVER_PLACEHOLDER = "{server}";

interface Naming {
  readonly naming: string;
  /** Every configured server of the hub, up or not. */
  readonly servers: readonly NamedServer[];
}

/** The server's part of public names: its own name, unless a server of the hub has it. */
function publicServerName(name: string, { naming, servers }: Naming): string {
  // Names without the server are made unique by hashes.
  if (!naming.includes(SERVER_PLACEHOLDER)) return name;
  const hosts = servers.map(({ id, toolPrefix }) => new NamePattern(naming, id, toolPrefix));
  const isFree = (candidate: string): boolean => {
    const pattern = new NamePattern(naming, candidate, undefined);
    return !hosts.some((host) => host.equals(pattern));
  };
  return [name, `session-${name}`].find(isFree) ?? `session-${name}`;
}
