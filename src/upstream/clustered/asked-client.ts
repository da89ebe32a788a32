/** The client behind a forwarded call: it sits at another node and answers from there. */
import type { IncomingCall } from "../../cluster/cluster.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import type { ClientSide, ServerRequestContext } from "../../model/session.ts";
import { answerServer } from "../server-requests.ts";
import { readError, sentError, type SentClient } from "./messages.ts";

/** At the node that runs the server. */
export function clientOf(sent: SentClient, call: Pick<IncomingCall, "ask" | "from">): ClientSide {
  let open = 0;
  const ask =
    (method: string) =>
    async (params: JsonObject, signal: AbortSignal): Promise<JsonObject> => {
      open++;
      try {
        const answer = await call.ask({ method, params }, signal);
        if (isJsonObject(answer["error"])) throw readError(answer["error"]);
        return isJsonObject(answer["result"]) ? answer["result"] : {};
      } finally {
        open--;
      }
    };
  const roots = ask("roots/list");
  const sample = ask("sampling/createMessage");
  const elicit = ask("elicitation/create");
  const { answers } = sent;
  return {
    key: `${call.from}/${sent.key}`,
    // What the client itself says of it does not travel: an open question is the usual reason.
    get waiting() {
      return open > 0;
    },
    capabilities: sent.capabilities,
    // One that does not say is of a node that knows nothing of it.
    rootsOnRequest: sent.rootsOnRequest ?? true,
    ...(answers.roots ? { listRoots: ({ signal }: ServerRequestContext) => roots({}, signal) } : {}),
    ...(answers.sampling
      ? { sample: (params: JsonObject, { signal }: ServerRequestContext) => sample(params, signal) }
      : {}),
    ...(answers.elicitation
      ? { elicit: (params: JsonObject, { signal }: ServerRequestContext) => elicit(params, signal) }
      : {}),
  };
}

/** At the node of the caller. */
export async function answerQuestion(
  server: string,
  client: ClientSide,
  { method, params }: JsonObject,
  signal: AbortSignal,
): Promise<JsonObject> {
  try {
    return { result: await answerServer(server, client, String(method), isJsonObject(params) ? params : {}, signal) };
  } catch (error) {
    return { error: sentError(error) };
  }
}
