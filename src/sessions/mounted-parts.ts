/** Servers and tools that a session brings: a catalog layered over the hub's, and connections of its own. */
import { endsWithin } from "../base/async.ts";
import { Emitter } from "../base/emitter.ts";
import { terminalText } from "../base/visible-text.ts";
import { Catalog, type CatalogReader, LayeredCatalog } from "../catalog/catalog.ts";
import { NamePattern } from "../catalog/naming.ts";
import type { Snapshot } from "../catalog/snapshot.ts";
import { isSessionLocalSource, sessionLocalSource, type ToolCapability } from "../model/capability.ts";
import { ToolcribError } from "../model/errors.ts";
import type { ServerInfo } from "../model/server-state.ts";
import type { Tool } from "../model/tool.ts";
import { Redactor } from "../secrets/redactor.ts";
import { type LocalTools, LocalToolSource } from "../tools/tool-registry.ts";
import { checkNotReserved, checkParameters, checkToolShape } from "../tools/tool-shape.ts";
import type { Connection } from "../upstream/connection.ts";
import type {
  GivenTools,
  LeftOutServer,
  MountingSession,
  MountOptions,
  SessionHost,
  SessionNotice,
  SessionPartEvents,
  SessionParts,
  SessionServers,
} from "./session-parts.ts";
import { type SessionServer, SessionServerSet } from "./session-servers.ts";

const MAX_NAMED = 10;
const MAX_NOTICES = 100;

/** False if the work takes longer than `until`, in milliseconds from the mount on, or than the mount may wait. */
type Wait = (work: Promise<unknown>, until?: number) => Promise<boolean>;

export class MountedParts implements SessionParts {
  /** Knows the session's secrets besides the hub's. */
  readonly redactor: Redactor;
  readonly #host: SessionHost;
  readonly #session: MountingSession;
  readonly #suffix: string;
  readonly #events: Emitter<SessionPartEvents>;
  readonly #notices: SessionNotice[] = [];
  #joining: Promise<void> = Promise.resolve();
  readonly #servers: SessionServerSet;
  readonly #tools = new ToolGroups();
  /** Keys of notices that were sent. */
  readonly #told = new Set<string>();
  #laid: { readonly own: Catalog; readonly reader: CatalogReader } | undefined;
  #stopNaming: () => void = () => {};
  #stopIdle: () => void = () => {};
  #closed: Promise<void> | undefined;

  constructor(host: SessionHost, session: MountingSession) {
    this.#host = host;
    this.#session = session;
    this.#events = session.events;
    this.#suffix = host.sources.claim(session.context.id);
    this.redactor = new Redactor(host.deps.redactor);
    this.#servers = new SessionServerSet({
      host,
      session,
      suffix: this.#suffix,
      redactor: this.redactor,
      tell: (notice) => this.#tell(notice),
      events: {
        onState: (info) => this.#events.emit("server", info),
        onReady: (connection) => host.onReady(connection),
        onCount: () => this.#share(),
        onResource: (source, uri) => this.#events.emit("resource", { uri: this.reader?.publicUri(source, uri) ?? uri }),
        onUse: () => this.#awaitIdle(),
        onOddity: ({ server, message }) =>
          host.onWarning({ session: session.context.id, server, message: this.redactor.mask(message) }),
      },
    });
  }

  /** The hub's catalog with these parts over it; undefined while there are none. */
  get reader(): CatalogReader | undefined {
    return this.#laid?.reader;
  }

  /** These parts alone; undefined while there are none. */
  get snapshot(): Snapshot | undefined {
    return this.#laid?.own.snapshot();
  }

  connections(): readonly Connection[] {
    return this.#servers.list.map(({ connection }) => connection);
  }

  /** Those whose tools could have this name. */
  whoCouldGive(publicName: string): readonly Connection[] {
    const { naming } = this.#host.catalog.basis;
    return this.#servers.list
      .filter(({ id, shownAs }) => new NamePattern(naming, id, undefined, shownAs).canProduce(publicName))
      .map(({ connection }) => connection);
  }

  /** The client's name for the server with this id; undefined if it has none. */
  nameOf(id: string): string | undefined {
    return this.#servers.list.find((server) => server.id === id)?.name;
  }

  async mount(
    servers: SessionServers,
    { waitMs = this.#host.settings().wait, leavesLate = false }: MountOptions = {},
  ): Promise<void> {
    this.#checkOpen();
    const { removed, added } = this.#servers.change(servers);
    const ended = Promise.all(removed.map((server) => this.#remove(server))).then(() => {});
    if (added.length > 0 || removed.length > 0) this.#join(added, ended);
    for (const server of this.#servers.list) if (!added.includes(server)) server.retry();
    this.#share();
    const { clock } = this.#host.deps;
    const began = clock.now();
    const signal = this.#session.closing;
    const all = this.settled();
    const wait: Wait = (work, until = waitMs) =>
      endsWithin(work, { clock, signal, ms: Math.max(Math.min(waitMs, until) - (clock.now() - began), 0) });
    if (leavesLate) await this.#waitForOne(all, wait);
    else await wait(all);
    this.#checkOpen();
    const join = async (): Promise<void> => {
      const isReady = this.#servers.list.some(({ connection }) => connection.info().status === "connected");
      if (leavesLate && isReady) await wait(all, clock.now() - began + this.#host.settings().lateMs);
      if (signal.aborted) return;
      for (const server of this.#servers.list) server.reportLate(clock.now() - began);
      this.#awaitIdle();
    };
    this.#joining = join();
    if (!leavesLate) await this.#joining;
  }

  /**
   * Until a server is ready. While none is, the hub's servers are kept from the session no longer than from any client: a stuck
   * server cannot be told from one that starts.
   */
  async #waitForOne(all: Promise<void>, wait: Wait): Promise<void> {
    const some = this.#servers.list.map(async ({ first, connection }) => {
      await first;
      // One that failed says nothing about how long others take.
      if (connection.info().status !== "connected") await all;
    });
    const one = Promise.race([all, ...some]);
    if (await wait(one, this.#host.settings().listWaitMs)) return;
    const hub = this.#hubServers();
    await wait(Promise.race([one, hub.listed]));
    hub.stop();
  }

  /** Resolves when the hub has tools of a server, connected or known from an earlier run. */
  #hubServers(): { readonly listed: Promise<void>; stop(): void } {
    const { catalog } = this.#host;
    const { promise: listed, resolve } = Promise.withResolvers<void>();
    const look = (): void => {
      const isThere = catalog.snapshot().tools.some(({ origin }) => catalog.source(origin.source)?.kind === "server");
      if (isThere) resolve();
    };
    const stop = catalog.on("change", look);
    look();
    return { listed, stop };
  }

  setTools(group: string, tools: readonly Tool[]): GivenTools {
    this.#checkOpen();
    const most = this.#mostTools();
    if (tools.length > 0 && this.#laid?.own.source(this.#localId) === undefined) this.#offerTools();
    const { taken, tooMany } = this.#tools.set(group, tools, most);
    this.#share();
    if (taken.length > 0) {
      const message = `Left out, because the session already has tools with these names: ${listNames(taken)}.`;
      this.#tell({ level: "warning", message });
    }
    if (tooMany.length > 0) {
      const message = `Left out, because a session may bring ${most} tools: ${listNames(tooMany)}.`;
      this.#tell({ level: "warning", message, hint: "`limits.sessionTools` in the config sets the limit." });
    }
    const left = new Set([...taken, ...tooMany]);
    return { names: tools.filter(({ name }) => !left.has(name)).map(({ name }) => this.#publicName(name)) };
  }

  /** Of one of its in-process tools. */
  #publicName(name: string): string {
    const isMeant = ({ origin }: ToolCapability): boolean => origin.source === this.#localId && origin.name === name;
    return this.snapshot?.tools.find(isMeant)?.name ?? name;
  }

  servers(): readonly ServerInfo[] {
    return this.#servers.list.map(({ connection }) => connection.info());
  }

  leftOut(): readonly LeftOutServer[] {
    return this.#servers.leftOut;
  }

  notices(): readonly SessionNotice[] {
    return [...this.#notices];
  }

  joined(): Promise<void> {
    return this.#joining;
  }

  async settled(): Promise<void> {
    await Promise.all(this.#servers.list.map(({ first }) => first));
  }

  on<Name extends keyof SessionPartEvents>(name: Name, listener: (event: SessionPartEvents[Name]) => void): () => void {
    return this.#events.on(name, listener);
  }

  /** Resolves when no process is left. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    this.#events.clear();
    this.#stopIdle();
    this.#stopNaming();
    this.#laid?.own.close();
    for (const { id } of this.#servers.list) this.#host.sources.delete(id);
    this.#host.sources.delete(this.#localId);
    this.#host.sources.release(this.#suffix);
    this.#tools.close();
    await this.#servers.close();
  }

  /** Its servers end when none of them has been used for a while; what they list stays, and the next use starts them again. */
  #awaitIdle(): void {
    this.#stopIdle();
    if (this.#session.closing.aborted || this.#servers.list.length === 0) return;
    const ms = this.#host.settings().idleMinutes * 60_000;
    this.#stopIdle = this.#host.deps.clock.after(ms, () => {
      for (const { connection } of this.#servers.list) connection.sleep();
    });
  }

  #join(added: readonly SessionServer[], after: Promise<void>): void {
    const { sources } = this.#host;
    const { own } = this.#lay();
    this.#nameServers(own);
    for (const server of added) {
      const { name, connection, id } = server;
      const where = `the session's entry of "${name}"`;
      const { maskContent: mask } = this.redactor;
      sources.add(id, { name, where, rules: connection.spec.tools, connection, mask, isOwnerOnly: () => false });
      own.addSource(server.source);
      server.start(after);
    }
  }

  #nameServers(own: Catalog): void {
    own.configure({ servers: this.#servers.list.map(({ id, shownAs }) => ({ id, shownAs })) });
  }

  #remove(server: SessionServer): Promise<void> {
    this.#laid?.own.removeSource(server.id);
    this.#host.sources.delete(server.id);
    return this.#servers.end(server);
  }

  #offerTools(): void {
    const id = this.#localId;
    const isOwnerOnly = (name: string): boolean => this.#tools.getLocal(name)?.ownerOnly === true;
    this.#host.sources.add(id, {
      name: "session",
      where: "the session's tools",
      mask: this.redactor.maskContent,
      isOwnerOnly,
    });
    this.#lay().own.addSource(new LocalToolSource(this.#tools, id));
  }

  get #localId(): string {
    return sessionLocalSource(this.#suffix);
  }

  #lay(): { readonly own: Catalog; readonly reader: CatalogReader } {
    if (this.#laid !== undefined) return this.#laid;
    const { catalog } = this.#host;
    const own = new Catalog({ servers: [] }, catalog);
    own.on("change", () => {
      this.#look(own.snapshot());
      this.#events.emit("change", {});
    });
    // What is left out of a list, or has a name that is taken.
    own.on("warning", ({ source, message }) => {
      const server = this.nameOf(source);
      // Clients do not know the ids.
      const isNamed = server !== undefined && message.startsWith(`${source} `);
      const told = isNamed ? `The server "${server}"${message.slice(source.length)}` : message;
      this.#once(`${source} ${message}`, { level: "warning", server, message: told });
    });
    this.#stopNaming = catalog.on("naming", () => {
      if (this.#servers.rename()) this.#nameServers(own);
    });
    this.#laid = { own, reader: new LayeredCatalog(catalog, own) };
    return this.#laid;
  }

  /** The session's own tools come first, then its servers' in turn. */
  #share(): void {
    let left = Math.max(0, this.#mostTools() - this.#tools.count);
    for (const server of this.#servers.list) {
      server.setCap(left);
      left = Math.max(0, left - server.source.count);
    }
  }

  #mostTools(): number {
    return Math.max(0, Math.min(this.#host.settings().tools, this.#session.limits.tools ?? Infinity));
  }

  /** Reports definitions that read like an attack, and tools whose public name differs from the client's. */
  #look({ tools, prompts, resources, templates }: Snapshot): void {
    for (const capability of [...tools, ...prompts, ...resources, ...templates]) {
      const suspicion = this.#host.suspicion(capability);
      if (suspicion === undefined) continue;
      const { kind, origin, fingerprint } = capability;
      const server = this.nameOf(origin.source);
      const message = `The definition of the ${kind} ${origin.name} looks like an attack: ${suspicion}`;
      this.#once(`${origin.source} ${kind} ${origin.name} ${fingerprint}`, {
        level: "warning",
        message,
        server,
      });
    }
    for (const { name, origin } of tools) {
      if (!isSessionLocalSource(origin.source) || name === origin.name) continue;
      const message = `The hub already has a tool "${origin.name}". The session's tool is called "${name}".`;
      this.#once(`name ${name}`, { level: "info", message });
    }
  }

  #once(key: string, notice: SessionNotice): void {
    if (this.#told.has(key)) return;
    this.#told.add(key);
    this.#tell(notice);
  }

  #tell(given: SessionNotice): void {
    // Names of tools are the server's own words.
    const notice = Object.freeze(this.redactor.maskAll({ ...given, message: terminalText(given.message) }));
    this.#notices.push(notice);
    if (this.#notices.length > MAX_NOTICES) this.#notices.shift();
    this.#events.emit("notice", notice);
    const { level, server, message } = notice;
    if (level === "warning") this.#host.onWarning({ session: this.#session.context.id, server, message });
  }

  #checkOpen(): void {
    if (this.#session.closing.aborted) throw new ToolcribError("cancelled", "The session is closed.");
  }
}

function listNames(names: readonly string[]): string {
  const rest = names.length - MAX_NAMED;
  return `${names.slice(0, MAX_NAMED).join(", ")}${rest > 0 ? ` and ${rest} more` : ""}`;
}

/** The group of Toolcrib's own agent: it alone has names that begin with `toolcrib_`, and they do not count. */
const AGENT_GROUP = "agent";

/** Groups of Toolcrib's own tools. Their schemas are right; to compile them takes ajv a tenth of a second before the first turn. */
const OWN_GROUPS = new Set([AGENT_GROUP, "acp-fs"]);

/** In-process tools of one session, in groups that are replaced as a whole. */
class ToolGroups implements LocalTools {
  readonly #events = new Emitter<{ local: undefined }>();
  readonly #groups = new Map<string, readonly Tool[]>();
  #byName: ReadonlyMap<string, Tool> = new Map();

  /** How many there are that count. */
  get count(): number {
    return [...this.#groups].reduce((sum, [group, tools]) => sum + (group === AGENT_GROUP ? 0 : tools.length), 0);
  }

  /**
   * Throws for an invalid tool, and then changes nothing. Returns the tools that were left out.
   * @param room How many tools all groups may have together.
   */
  set(group: string, tools: readonly Tool[], room: number): { readonly taken: string[]; readonly tooMany: string[] } {
    for (const tool of tools) {
      checkToolShape(tool);
      if (group !== AGENT_GROUP) checkNotReserved(tool);
      if (!OWN_GROUPS.has(group)) checkParameters(tool);
    }
    this.#groups.delete(group);
    const names = new Set([...this.#groups.values()].flat().map(({ name }) => name));
    const most = group === AGENT_GROUP ? Infinity : Math.max(0, room - this.count);
    const kept: Tool[] = [];
    const taken: string[] = [];
    const tooMany: string[] = [];
    for (const tool of tools) {
      if (names.has(tool.name)) taken.push(tool.name);
      else if (kept.length >= most) tooMany.push(tool.name);
      else kept.push(tool);
      names.add(tool.name);
    }
    if (kept.length > 0) this.#groups.set(group, kept);
    this.#byName = new Map([...this.#groups.values()].flat().map((tool) => [tool.name, tool]));
    this.#events.emit("local", undefined);
    return { taken, tooMany };
  }

  localTools(): Tool[] {
    return [...this.#byName.values()];
  }

  getLocal(name: string): Tool | undefined {
    return this.#byName.get(name);
  }

  on(event: "local", listener: () => void): () => void {
    return this.#events.on(event, listener);
  }

  close(): void {
    this.#groups.clear();
    this.#byName = new Map();
    this.#events.clear();
  }
}
