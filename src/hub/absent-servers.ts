/** A name that nobody has may belong to a server that is not up: then it is woken, or its absence is the answer. */
import { NamePattern } from "../catalog/name-pattern.ts";
import { ToolcribError } from "../model/errors.ts";
import type { ServerInfo } from "../model/server-state.ts";
import type { Use } from "../model/source.ts";
import type { Policy } from "../policy/decide.ts";
import type { Session } from "../sessions/session.ts";
import type { ServerConnection } from "../upstream/server-connection.ts";

interface Candidate {
  readonly connection: ServerConnection;
  readonly pattern: NamePattern;
}

export class AbsentServers {
  readonly #candidates: readonly Candidate[];
  readonly #policy: Policy;

  constructor(template: string, connections: Iterable<ServerConnection>, policy: Policy) {
    this.#policy = policy;
    this.#candidates = Array.from(connections, (connection) => ({
      connection,
      pattern: new NamePattern(template, connection.spec.id, connection.spec.toolPrefix),
    }));
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

  #absent(session: Session, use: Use): (Candidate & { state: ServerInfo["state"] })[] {
    if (use.kind !== "tool" && use.kind !== "prompt") return [];
    const { name, kind } = use;
    return this.#candidates
      .filter(({ pattern }) => pattern.couldGive(name))
      .map((candidate) => ({ ...candidate, state: candidate.connection.info().state }))
      .filter(({ state }) => state !== "ready" && state !== "degraded")
      .filter(({ connection }) => {
        const subject = { kind, publicName: name, originName: name, server: connection.id };
        return this.#policy.decide(subject, session).verdict !== "deny";
      });
  }
}
