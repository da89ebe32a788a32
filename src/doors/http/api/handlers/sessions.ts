import type { CheckedInput } from "../../../../contract/operations.ts";
import type { Caller } from "../../../../model/caller.ts";
import { ToolcribError } from "../../../../model/errors.ts";
import type { Session } from "../../../../sessions/session.ts";
import { namedSession } from "../../caller-session.ts";
import type { HandlerParts, Handlers, OperationContext } from "../operation.ts";
import type { OperatorHub } from "../operator-hub.ts";
import { scopeMissing } from "../scope-missing.ts";

export const sessionHandlers: Handlers<"listSessions" | "openSession" | "getSession" | "closeSession"> = {
  listSessions: (input, _context, { hub }) => hub.activity.sessions(input),

  async openSession({ servers, waitMs, ...input }, context, parts) {
    const session = parts.opened.open(context.caller, context.session, optionsOf(input, context.caller));
    const giveUp = (): void => session.close();
    context.signal.addEventListener("abort", giveUp, { once: true });
    try {
      if (servers !== undefined) await session.own.mount(servers, waitMs === undefined ? {} : { waitMs });
      if (context.signal.aborted) throw new ToolcribError("cancelled", "Nobody waits for the session any more.");
    } catch (error) {
      session.close();
      throw error;
    } finally {
      context.signal.removeEventListener("abort", giveUp);
    }
    tellOf(session, context, parts);
    const { id, own } = session;
    return { id, sessionId: id, servers: own.servers(), notices: own.notices() };
  },

  async getSession({ sessionId }, { caller }, { hub }) {
    assertMayName(hub, caller, sessionId);
    const session = await hub.activity.session(sessionId);
    if (session === undefined) throw new ToolcribError("not_found", `No session has the id ${sessionId}.`);
    const own = hub.sessions().find(({ id }) => id === sessionId)?.own;
    return { session: { ...session, ...(own && { servers: own.servers(), notices: own.notices() }) } };
  },

  async closeSession({ sessionId }, { caller }, { hub }) {
    assertMayName(hub, caller, sessionId);
    await hub.activity.closeSession(sessionId);
    return { sessionId };
  },
};

/** Whether another's session is there is for operators to know. */
function assertMayName(hub: OperatorHub, caller: Caller, id: string): void {
  if (!caller.scopes.has("admin") && namedSession(hub, caller, id) === undefined) throw scopeMissing("admin");
}

type Asked = Pick<CheckedInput<"openSession">, "role" | "workspaceDir">;

function optionsOf({ role, workspaceDir }: Asked, caller: Caller): { role?: string; workspaceDir?: string } {
  const isOperator = caller.scopes.has("admin");
  if (role !== undefined && role !== caller.role && (caller.role !== undefined || !isOperator)) {
    throw new ToolcribError("denied", "The role is not this caller's own.", {
      hint: "Leave `role` out: the session has the role that the token has.",
    });
  }
  // Servers take a root for a folder that they may work in.
  if (workspaceDir !== undefined && !isOperator) throw scopeMissing("admin");
  return { role, workspaceDir };
}

/** What happens after the answer is told to a door that can. */
function tellOf(session: Session, { tell }: OperationContext, { redactor }: HandlerParts): void {
  if (tell === undefined) return;
  const { id, own } = session;
  own.on("notice", (notice) => tell("session.notice", redactor.maskAll({ session: id, notice })));
  own.on("server", (server) => tell("session.server", redactor.maskAll({ session: id, server })));
}
