/** Operations on sessions, approvals and the audit log, and the overview. */
import type { Hub } from "../../../hub/hub.ts";
import type { CheckedInput } from "../../../contract/operations.ts";
import { type Caller, SCOPES } from "../../../model/caller.ts";
import { ToolcribError } from "../../../model/errors.ts";
import type { Session } from "../../../sessions/session.ts";
import { namedSession } from "./caller-sessions.ts";
import { type HandlerParts, type Handlers, missingScope, type OperationContext } from "./operation-handler.ts";

export const sessionHandlers: Handlers<"listSessions" | "openSession" | "getSession" | "closeSession"> = {
  listSessions: (input, _context, { hub }) => hub.internals.activity.sessions(input),

  async openSession({ servers, waitMs, ...input }, context, parts) {
    const session = parts.opened.open(context.caller, context.session, sessionOptions(input, context.caller));
    const giveUp = (): void => session.close();
    context.signal.addEventListener("abort", giveUp, { once: true });
    try {
      if (servers !== undefined) await session.own.mount(servers, waitMs === undefined ? {} : { waitMs });
      if (context.signal.aborted) throw new ToolcribError("cancelled", "The request was cancelled.");
    } catch (error) {
      session.close();
      throw error;
    } finally {
      context.signal.removeEventListener("abort", giveUp);
    }
    forwardSessionEvents(session, context, parts);
    const { id, own } = session;
    return { id, sessionId: id, servers: own.servers(), notices: own.notices() };
  },

  async getSession({ sessionId }, { caller }, { hub }) {
    assertCanAccess(hub, caller, sessionId);
    const session = await hub.internals.activity.session(sessionId);
    if (session === undefined) throw new ToolcribError("not_found", `No session has the id ${sessionId}.`);
    const own = hub.internals.sessions().find(({ id }) => id === sessionId)?.own;
    return { session: { ...session, ...(own && { servers: own.servers(), notices: own.notices() }) } };
  },

  async closeSession({ sessionId }, { caller }, { hub }) {
    assertCanAccess(hub, caller, sessionId);
    await hub.internals.activity.closeSession(sessionId);
    return { sessionId };
  },
};

/** Only operators may learn whether another caller's session exists. */
function assertCanAccess(hub: Hub, caller: Caller, id: string): void {
  if (!caller.scopes.has("admin") && namedSession(hub.internals, caller, id) === undefined) throw missingScope("admin");
}

type RequestedOptions = Pick<CheckedInput<"openSession">, "role" | "workspaceDir">;

function sessionOptions(
  { role, workspaceDir }: RequestedOptions,
  caller: Caller,
): { role?: string; workspaceDir?: string } {
  const isOperator = caller.scopes.has("admin");
  if (role !== undefined && role !== caller.role && (caller.role !== undefined || !isOperator)) {
    throw new ToolcribError("denied", "The role is not this caller's role.", {
      hint: "Leave `role` out: the session has the role of the token.",
    });
  }
  // Servers treat a root as a folder that they may work in.
  if (workspaceDir !== undefined && !isOperator) throw missingScope("admin");
  return { role, workspaceDir };
}

/** Sends later events of the session to the client, if the door supports that. */
function forwardSessionEvents(session: Session, { tell }: OperationContext, { redactor }: HandlerParts): void {
  if (tell === undefined) return;
  const { id, own } = session;
  own.on("notice", (notice) => tell("session.notice", redactor.maskAll({ session: id, notice })));
  own.on("server", (server) => tell("session.server", redactor.maskAll({ session: id, server })));
}

export const approvalHandlers: Handlers<"listApprovals" | "getApproval" | "answerApproval"> = {
  listApprovals: (input, _context, { hub }) => hub.internals.activity.approvals(input),

  async getApproval({ approvalId }, _context, { hub }) {
    const approval = await hub.internals.activity.approval(approvalId);
    if (approval !== undefined) return { approval };
    throw new ToolcribError("not_found", `No approval has the id ${approvalId}.`);
  },

  answerApproval({ approvalId, answer }, { caller, session }, { hub }) {
    const isOperator = caller.scopes.has("admin");
    // It changes the rules for all callers.
    if (answer === "always" && !isOperator) throw missingScope("admin");
    return hub.internals.activity.answer(
      approvalId,
      answer,
      caller.user ?? null,
      session.door,
      // An operator may answer own calls: a person who tries a tool on the page answers there too.
      isOperator ? undefined : caller.key,
    );
  },
};

export const auditHandlers: Handlers<"listAudit" | "verifyAudit"> = {
  listAudit: (input, _context, { hub }) => hub.audit.query(input),
  verifyAudit: (_input, _context, { hub }) => hub.audit.verify(),
};

export const overviewHandlers: Handlers<"me" | "overview"> = {
  me: (_input, { caller, baseUrl }, { version }) => ({
    user: caller.user ?? null,
    role: caller.role ?? null,
    owner: caller.owner,
    scopes: SCOPES.filter((scope) => caller.scopes.has(scope)),
    version,
    url: baseUrl,
  }),
  overview: (_input, _context, { hub }) => hub.internals.activity.overview(),
};
