/** Questions of MCP servers to the user, where the client has forms. */
import { type AgentContext, type CreateElicitationRequest, methods } from "@agentclientprotocol/sdk/unstable";
import type { JsonObject } from "../../model/json.ts";
import type { ElicitationCallback } from "../../model/session.ts";

export function elicitThrough(client: AgentContext, sessionId: string): ElicitationCallback {
  return async (params, { server, signal }): Promise<JsonObject> => {
    const question = { ...params, mode: "form", sessionId, message: `${server}: ${String(params["message"])}` };
    const answer = await client.request(
      methods.client.elicitation.create,
      // A form of MCP is one of ACP; what a server wrote into it is the client's to judge.
      question as unknown as CreateElicitationRequest,
      { cancellationSignal: signal, stopWaitingOnCancel: true },
    );
    return { ...answer };
  };
}
