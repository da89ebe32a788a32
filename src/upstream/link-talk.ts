/** What a server says on a link, taken to those who deal with it. */
import type { ToolcribError } from "../model/errors.ts";
import { calledName, type ServerSpec } from "../model/server-spec.ts";
import type { ClientSide } from "../model/session.ts";
import type { ConnectionDeps } from "./connection-deps.ts";
import type { NoticeRouter } from "./notice-router.ts";
import { withOfferedRoots } from "./offered-roots.ts";
import type { Peer, PeerOptions } from "./peer.ts";
import { answerServer, clientFor } from "./server-requests.ts";

interface Hearing {
  readonly spec: ServerSpec;
  readonly deps: ConnectionDeps;
  readonly notices: NoticeRouter;
  /** Of the link, once it is open. */
  readonly peer: () => Peer | undefined;
  readonly onLost: (error: ToolcribError) => void;
  readonly warn: (text: string) => void;
}

export function hearLink({ spec, deps, notices, peer, onLost, warn }: Hearing): PeerOptions {
  return {
    clock: deps.clock,
    onRequest: (method, params, incoming) => {
      const idle = withOfferedRoots(idleClient(spec.id, deps), spec, deps);
      const client = clientFor(incoming.client, peer()?.callers() ?? [], idle);
      return answerServer(calledName(spec), client, method, params, incoming.signal);
    },
    onNotification: (method, params, request) => notices.route(method, params, request),
    onLost,
    onWarning: warn,
  };
}

function idleClient(server: string, { idleClient: choose, user, session, hubSession }: ConnectionDeps): ClientSide {
  return choose?.(server, user, session) ?? hubSession.client;
}
