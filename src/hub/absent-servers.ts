/** A name that nobody has may belong to a server that is not up: then it is woken, or its absence is the answer. */
import { NamePattern } from "../catalog/name-pattern.ts";
import type { LoadedConfig } from "../config/load-config.ts";
import { ToolcribError } from "../model/errors.ts";
import type { ServerInfo } from "../model/server-state.ts";
import type { Use } from "../model/source.ts";
import type { BroughtPolicy, Policy } from "../policy/decide.ts";
import type { Session } from "../sessions/session.ts";
import type { ServerConnection } from "../upstream/server-connection.ts";

interface AbsentServersOptions {
  readonly config: LoadedConfig;
  /** The connection that serves under an id now; it may be another one later. */
  readonly connection: (id: string) => ServerConnection | undefined;
  readonly policy: Policy;
  /** Of a session's own server. */
  readonly brought: (id: string) => BroughtPolicy | undefined;
}

interface Absent {
  readonly connection: ServerConnection;
  readonly state: ServerInfo["state"];
}

export class AbsentServers {
  readonly #patterns: readonly NamePattern[];
  readonly #connection: AbsentServersOptions["connection"];
  readonly #policy: Policy;
  readonly #brought: AbsentServersOptions["brought"];

  constructor({ config, connection, policy, brought }: AbsentServersOptions) {
    this.#policy = policy;
    this.#brought = brought;
    this.#connection = connection;
    const template = config.config.tools.naming;
    this.#patterns = config.servers.map(({ id, toolPrefix }) => new NamePattern(template, id, toolPrefix));
  }

  /** Connects servers that wait to be asked for, and waits for those on their way. False if there are none. */
  async wake(session: Session, use: Use): Promise<boolean> {
    const sleeping = this.#absent(session, use).filter(({ state }) => state === "idle" || state === "connecting");
    await Promise.all(sleeping.map(({ connection }) => connection.connect()));
    return sleeping.length > 0;
  }

  /** `server_unavailable` if a server that this session may see could have it and is down. */
  explain(session: Session, use: Use): ToolcribError | undefined {
    const [down] = this.#absent(session, use);
    if (down === undefined) return undefined;
    const { id, name, lastError, hint, state } = down.connection.info();
    return new ToolcribError(
      "server_unavailable",
      `The server "${this.#brought(id) === undefined ? id : name}" is not connected: ${lastError ?? `it is ${state}`}`,
      {
        hint: hint ?? "`toolcrib doctor` checks it.",
        details: { server: id },
      },
    );
  }

  #absent(session: Session, use: Use): Absent[] {
    if (use.kind !== "tool" && use.kind !== "prompt") return [];
    const { name, kind } = use;
    return this.#patterns
      .filter((pattern) => pattern.couldGive(name))
      .flatMap(({ server }) => this.#connection(server) ?? [])
      .concat(session.brought?.whoCouldGive(name) ?? [])
      .map((connection) => ({ connection, state: connection.info().state }))
      .filter(({ state }) => state !== "ready" && state !== "degraded")
      .filter(({ connection }) => {
        const brought = this.#brought(connection.id);
        const subject = { kind, publicName: name, originName: name, server: connection.id, brought };
        return this.#policy.decide(subject, session).verdict !== "deny";
      });
  }
}
