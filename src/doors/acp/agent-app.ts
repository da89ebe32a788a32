/** Which method goes where. */
import { agent, type AgentApp, type AgentContext, methods } from "@agentclientprotocol/sdk/unstable";
import type { AcpDoor } from "./acp-door.ts";
import type { McpOverAcp } from "./mcp-over-acp.ts";
import { knownSession, sessionPlace } from "./params.ts";
import { requestError } from "./request-error.ts";

export function agentApp(door: AcpDoor, mcp: McpOverAcp): AgentApp {
  const { session } = methods.agent;
  return (
    agent({ name: "toolcrib" })
      .onRequest(
        methods.agent.initialize,
        answered(({ params }) => door.initialize(params)),
      )
      .onRequest(
        methods.agent.authenticate,
        answered(({ params }) => door.authenticate(params)),
      )
      .onRequest(
        session.new,
        parsed(sessionPlace),
        answered(({ params, signal }) => door.newSession(params, signal)),
      )
      .onRequest(
        session.load,
        parsed(knownSession),
        answered(({ params, signal }) => door.loadSession(params, signal)),
      )
      .onRequest(
        session.resume,
        parsed(knownSession),
        answered(({ params, signal }) => door.resumeSession(params, signal)),
      )
      .onRequest(
        session.list,
        answered(({ params }) => door.listSessions(params)),
      )
      .onRequest(
        session.close,
        answered(({ params }) => door.closeSession(params)),
      )
      .onRequest(
        session.delete,
        answered(({ params }) => door.deleteSession(params)),
      )
      .onRequest(
        session.setMode,
        answered(({ params }) => door.setMode(params)),
      )
      .onRequest(
        session.setConfigOption,
        answered(({ params }) => door.setConfigOption(params)),
      )
      .onRequest(
        session.prompt,
        answered(({ params, signal }) => door.prompt(params, signal)),
      )
      // After `prompt`, so that a cancel that follows it at once finds it under way.
      .onNotification(session.cancel, ({ params }) => door.cancel(params))
      .onNotification(methods.agent.mcp.message, mcp.caller.handleNotification)
  );
}

interface Request<Params> {
  readonly params: Params;
  readonly signal: AbortSignal;
  readonly client: AgentContext;
}

function answered<Params, Answer>(
  answer: (request: Request<Params>) => Promise<Answer> | Answer,
): (request: Request<Params>) => Promise<Answer> {
  return async (request) => {
    try {
      return await answer(request);
    } catch (error) {
      throw requestError(error);
    }
  };
}

function parsed<Params>(parse: (params: unknown) => Params): (params: unknown) => Params {
  return (params) => {
    try {
      return parse(params);
    } catch (error) {
      throw requestError(error);
    }
  };
}
