/** Servers come, go and change their state. */
import type { ServerInfo, ServerState } from "../../../model/server-state.ts";
import type { Concern, Tell } from "./feed-event.ts";
import type { FeedEvents, FeedHub } from "./feed-hub.ts";
import { serverThen, type ServerThen } from "./seen-servers.ts";

/** Nothing else makes a connected server idle. */
const BY_REQUEST = "disconnected by request";

export class ServerEvents {
  readonly #hub: FeedHub;
  readonly #tell: Tell;
  /** The servers that were told of: of one that is gone the config says no more. */
  readonly #known = new Map<string, ServerThen>();
  onConnected: (id: string) => void = () => {};

  constructor(hub: FeedHub, tell: Tell) {
    this.#hub = hub;
    this.#tell = tell;
    for (const { id } of hub.servers()) this.#known.set(id, serverThen(hub.config, id));
  }

  listen(): (() => void)[] {
    return [
      this.#hub.on("server", (event) => this.#changed(event)),
      this.#hub.on("reload", (event) => this.#reloaded(event)),
    ];
  }

  #reloaded({ report }: FeedEvents["reload"]): void {
    const infos = new Map(this.#hub.servers().map((info) => [info.id, info]));
    for (const [id, server] of this.#known) {
      if (infos.has(id)) continue;
      this.#known.delete(id);
      this.#tell("mcp.server.removed", { serverId: id }, { server });
    }
    for (const [id, info] of infos) {
      if (!this.#known.has(id)) this.#added(info);
      else if (report.changed.includes(id)) {
        this.#known.set(id, serverThen(this.#hub.config, id));
        this.#tell("mcp.server.changed", { serverId: id, server: info }, this.#concern(id));
      }
    }
  }

  #added(info: ServerInfo): void {
    this.#known.set(info.id, serverThen(this.#hub.config, info.id));
    this.#tell("mcp.server.added", { server: info }, this.#concern(info.id));
  }

  #changed({ info, previous }: FeedEvents["server"]): void {
    const { id, state, lastError, hint } = info;
    if (!this.#known.has(id)) {
      // A server that is taken out says so itself when it closes; that it is gone is told by the reload.
      if (state === "closed") return;
      this.#added(info);
    }
    const concern = this.#concern(id);
    this.#tell("mcp.server.changed", { serverId: id, server: info }, concern);
    const [was, is] = [isUp(previous), isUp(state)];
    if (is && !was) {
      this.#tell("mcp.server.connected", { serverId: id, server: info }, concern);
      this.onConnected(id);
    }
    if (was && !is) {
      const reason = lastError ?? (state === "idle" ? BY_REQUEST : null);
      this.#tell("mcp.server.disconnected", { serverId: id, reason }, concern);
    }
    if (state === "failed" || (state === "restarting" && !was)) {
      const error = lastError ?? "It could not be connected.";
      this.#tell("mcp.server.error", { serverId: id, error, hint }, concern);
    }
  }

  #concern(id: string): Concern {
    return { server: this.#known.get(id) ?? serverThen(this.#hub.config, id) };
  }
}

function isUp(state: ServerState["kind"]): boolean {
  return state === "ready" || state === "degraded";
}
