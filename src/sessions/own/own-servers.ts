/** The servers of one session: which there are, and what becomes of them when the client names others. */
import { limitedReach } from "../../upstream/http/reach.ts";
import { InMemoryEras } from "../../upstream/era-memory.ts";
import type { ConnectionDeps } from "../../upstream/connection-deps.ts";
import { LiteralSecrets } from "../../secrets/literal-secrets.ts";
import type { Redactor } from "../../secrets/redactor.ts";
import type { Bringer, OwnHost } from "./own-host.ts";
import { OwnServer, type OwnServerEvents } from "./own-server.ts";
import type { LeftOutServer, SessionNotice, SessionServers } from "./own-parts.ts";
import { type BroughtServer, plainId, readServers } from "./read-servers.ts";
import { shownAs } from "./shown-as.ts";

/** More child processes than this are worth a word. */
const MANY_PROGRAMS = 5;

export interface OwnServersOptions {
  readonly host: OwnHost;
  readonly bringer: Bringer;
  /** What the ids of its servers end in. */
  readonly suffix: string;
  readonly redactor: Redactor;
  readonly tell: (notice: SessionNotice) => void;
  readonly events: Omit<OwnServerEvents, "tell">;
}

/** What `change` did. */
export interface ServerChange {
  readonly removed: readonly OwnServer[];
  readonly added: readonly OwnServer[];
}

export class OwnServers {
  readonly #options: OwnServersOptions;
  /** In the client's order. */
  #servers: readonly OwnServer[] = [];
  #leftOut: readonly LeftOutServer[] = [];
  /** With the id that the server had. */
  readonly #ending = new Map<Promise<void>, string>();
  /** One for all attempts of this session: nothing about a client's servers is written down. */
  readonly #eras = new InMemoryEras();

  constructor(options: OwnServersOptions) {
    this.#options = options;
  }

  get list(): readonly OwnServer[] {
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
    const added: OwnServer[] = [];
    const ending = new Set(this.#ending.values());
    const taken = new Set([...ending, ...this.#servers.map(({ id }) => id)]);
    this.#servers = wanted.map((brought) => {
      const before = present.get(brought.name);
      if (before !== undefined && before.brought.key === brought.key) return before;
      // It starts when the one before it has ended, but not when others have.
      const keeps = before !== undefined && !ending.has(before.id);
      const server = this.#make(brought, keeps ? before.id : this.#freeId(brought.name, taken));
      added.push(server);
      return server;
    });
    const kept = new Set(this.#servers);
    const removed = [...present.values()].filter((server) => !kept.has(server));
    return { removed, added };
  }

  /** Resolves when its process is gone. Never rejects. */
  end(server: OwnServer): Promise<void> {
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

  #read(given: SessionServers, leftOut: LeftOutServer[]): BroughtServer[] {
    const { bringer, tell } = this.#options;
    const { context, mayRunCommands, fromProgram } = bringer;
    const { cages, allowReferences } = this.#options.host.settings();
    return readServers(given, {
      workspaceDir: context.workspaceDir,
      mayRunCommands,
      references: fromProgram ? "any" : new Set(mayRunCommands ? allowReferences : []),
      cages,
      tell,
      onLeftOut: (entry) => leftOut.push(entry),
    });
  }

  #permitted(read: readonly BroughtServer[], leftOut: LeftOutServer[]): readonly BroughtServer[] {
    const { host, bringer, tell } = this.#options;
    const most = Math.max(0, Math.min(host.settings().servers, bringer.limits.servers ?? Infinity));
    for (const { name } of read.slice(most)) {
      leftOut.push({ name, reason: `a session may bring ${most} servers` });
      const message = `The server "${name}" is left out: a session may bring ${most} servers.`;
      tell({ level: "warning", server: name, message, hint: "`limits.sessionServers` of the config says how many." });
    }
    const permitted = read.slice(0, most);
    const programs = permitted.filter(({ spec }) => spec.command !== undefined).length;
    if (programs > MANY_PROGRAMS) {
      const message = `This session starts ${programs} programs for its servers, which takes memory and time.`;
      tell({ level: "warning", message });
    }
    return permitted;
  }

  /** Works out anew what stands for each in names, after servers of the hub came or went. Whether any is another. */
  rename(): boolean {
    const renamed = this.#servers.filter((server) => {
      const before = server.shownAs;
      server.shownAs = shownAs(server.name, this.#options.host.catalog.basis);
      return server.shownAs !== before;
    });
    for (const server of renamed) this.#tellName(server);
    return renamed.length > 0;
  }

  #make(brought: BroughtServer, id: string): OwnServer {
    const { host, tell, events } = this.#options;
    const { name } = brought;
    const shown = shownAs(name, host.catalog.basis);
    const server = new OwnServer({ brought, id, shownAs: shown }, this.#deps(brought), { ...events, tell });
    if (shown !== name) this.#tellName(server);
    return server;
  }

  #tellName({ name, shownAs: shown }: OwnServer): void {
    const message =
      shown === name
        ? `The hub has no server "${name}" any more; the names of the session's begin with "${name}" again.`
        : `The hub has a server "${name}" as well; the names of the session's begin with "${shown}".`;
    this.#options.tell({ level: "info", server: name, message });
  }

  #freeId(name: string, taken: Set<string>): string {
    const { suffix } = this.#options;
    const plain = plainId(name);
    let id = `${plain}@${suffix}`;
    // Where two have one pattern of names, the smaller id has the plain ones: `_` comes after `@`, so that those stay.
    for (let count = 2; taken.has(id); count++) id = `${plain}_${count}@${suffix}`;
    taken.add(id);
    return id;
  }

  #deps({ name, looksUp, wire }: BroughtServer): ConnectionDeps {
    const { host, bringer, redactor, tell } = this.#options;
    const { clock, env, pids, stderr, clientVersion, secrets, logLevel, graceMs, cages } = host.deps;
    const warned = new Set<string>();
    return {
      clock,
      env,
      pids,
      stderr,
      clientVersion,
      eras: this.#eras,
      redactor,
      secrets: looksUp ? secrets : new LiteralSecrets({ env, clock, redactor }),
      hubSession: bringer.context,
      offers: bringer.context.client.capabilities,
      reach: limitedReach({
        allowHosts: host.settings().allowHosts,
        localClient: bringer.mayRunCommands,
        isGuarded: (port) => !bringer.fromProgram && host.isOwnPort(port),
        onLoopback: (hostname) => {
          if (warned.has(hostname)) return;
          warned.add(hostname);
          const message = `The server "${name}" is at ${hostname}, which is the machine that Toolcrib runs on.`;
          tell({ level: "warning", server: name, message });
        },
      }),
      logLevel,
      graceMs,
      cages,
      openWire: wire,
    };
  }
}
