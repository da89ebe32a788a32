/** The servers of a hub as its callers use them: looked at, connected, tried, added, changed and removed. */
import { withCage } from "../../config/effective-cage.ts";
import type { LoadedConfig } from "../../config/load-config.ts";
import type { ServerDetail } from "../../contract/server.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { JsonObject } from "../../model/json.ts";
import type { ServerInfo } from "../../model/server-state.ts";
import type { ConnectionDeps } from "../../upstream/connection-deps.ts";
import type { ServerConnection } from "../../upstream/server-connection.ts";
import type { StderrLog } from "../../upstream/stdio/stderr-log.ts";
import type { ServerSet } from "../server-set.ts";
import { type AddedServers, STORE_DIALECT } from "./added-servers.ts";
import { cannotBeUsed, detailOfLeftOut, infoOfLeftOut } from "./left-out.ts";
import { refuseMask } from "./refuse-mask.ts";
import type { ServerSecrets } from "./server-secrets.ts";
import { type ChangeOptions, ServerChanges, type Written } from "./server-changes.ts";
import { serverDetail } from "./server-detail.ts";
import type { ServerHistory } from "./server-history.ts";
import { type TestedServer, testServer } from "./test-server.ts";

export interface HubServersOptions {
  readonly servers: ServerSet;
  readonly deps: ConnectionDeps;
  readonly added: AddedServers;
  readonly kept: ServerSecrets;
  readonly history: ServerHistory;
  readonly stderr: StderrLog;
  readonly config: () => LoadedConfig;
  /** Resolves when what was written is taken up and new servers are ready, have failed, or take too long. */
  readonly change: (write: () => Promise<Written | undefined>) => Promise<void>;
}

export class HubServers {
  readonly #options: HubServersOptions;
  readonly #changes: ServerChanges;

  constructor(options: HubServersOptions) {
    this.#options = options;
    this.#changes = new ServerChanges(options);
  }

  infos(): ServerInfo[] {
    const { servers, added } = this.#options;
    return [
      ...servers.list().map((connection) => connection.info()),
      ...[...added.leftOut.values()].map(infoOfLeftOut),
    ];
  }

  async detail(id: string): Promise<ServerDetail | undefined> {
    const { servers, added, config, stderr, history, deps } = this.#options;
    const connection = servers.get(id);
    const left = added.leftOut.get(id);
    if (connection === undefined) return left && detailOfLeftOut(left, deps.redactor);
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
    return testServer(withCage(spec, this.#options.config()), deps, signal);
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
    if (left !== undefined) throw cannotBeUsed(left);
    const ids = servers.list().map((each) => each.id);
    throw new ToolcribError("not_found", `There is no server "${id}".`, {
      hint: `Known servers: ${ids.join(", ") || "none"}.`,
    });
  }
}
