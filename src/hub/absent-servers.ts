/** A name that nobody has may belong to a server that is not up: then it is woken, or its absence is the answer. */
import { NamePattern } from "../catalog/name-pattern.ts";
import type { LoadedConfig } from "../config/load-config.ts";
import { ToolcribError } from "../model/errors.ts";
import type { ServerInfo } from "../model/server-state.ts";
import type { Use } from "../model/source.ts";
import type { Policy } from "../policy/decide.ts";
import type { Session } from "../sessions/session.ts";
import type { ServerConnection } from "../upstream/server-connection.ts";

interface AbsentServersOptions {
  readonly config: LoadedConfig;
  /** The connection that serves under an id now; it may be another one later. */
  readonly connection: (id: string) => ServerConnection | undefined;
  readonly policy: Policy;
}

interface Absent {
  readonly connection: ServerConnection;
  readonly state: ServerInfo["state"];
}

export class AbsentServers {
  readonly #patterns: readonly NamePattern[];
  readonly #connection: AbsentServersOptions["connection"];
  readonly #policy: Policy;

  constructor({ config, connection, policy }: AbsentServersOptions) {
    this.#policy = policy;
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
    const { id, lastError, hint, state } = down.connection.info();
    return new ToolcribError(
      "server_unavailable",
      `The server "${id}" is not connected: ${lastError ?? `it is ${state}`}`,
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
      .map((connection) => ({ connection, state: connection.info().state }))
      .filter(({ state }) => state !== "ready" && state !== "degraded")
      .filter(({ connection }) => {
        const subject = { kind, publicName: name, originName: name, server: connection.id };
        return this.#policy.decide(subject, session).verdict !== "deny";
      });
  }
}
