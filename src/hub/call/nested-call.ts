/** A call that runs another one on the caller's behalf. The inner one takes the whole call path by itself. */
import { errorText, errorTextForModel, type Outcome, ToolcribError } from "../../model/errors.ts";
import type { JsonObject } from "../../model/json.ts";
import type { CallToolResult } from "../../model/protocol.ts";
import type { UseContext } from "../../model/source.ts";
import type { Session } from "../../sessions/session.ts";

interface NestedRequest {
  readonly name: string;
  readonly arguments: JsonObject;
}

/** The hub's own `call`. */
export type NestedCall = (
  session: Session,
  request: NestedRequest & Omit<UseContext, "callId" | "session">,
) => Promise<Outcome<CallToolResult>>;

export async function nestedCall(
  call: NestedCall,
  session: Session,
  wanted: NestedRequest,
  context: UseContext,
): Promise<CallToolResult> {
  const { signal, onProgress, onNotice, logLevel, meta, audience, keepLarge, client, onAsk } = context;
  const inherited = { signal, onProgress, onNotice, logLevel, meta, audience, keepLarge, client, onAsk };
  const outcome = await call(session, { ...wanted, ...inherited });
  if (outcome.ok) return outcome.result;
  const { error, result } = outcome;
  if (result !== undefined) return result;
  if (error.code === "cancelled") throw new ToolcribError("cancelled", error.message);
  // For a model an error is an answer like any other: it can read it and do better.
  const text = audience === "agent" ? errorTextForModel(error) : errorText(error);
  return { content: [{ type: "text", text }], structuredContent: { error }, isError: true };
}
