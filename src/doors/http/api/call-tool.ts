/** A tool call as an operation. It goes through the hub's call path like any other. */
import { nearMatches } from "../../../catalog/near-matches.ts";
import { ToolcribError } from "../../../model/errors.ts";
import type { Outcome } from "../../../model/outcome.ts";
import type { CallToolResult, ReadResourceResult } from "../../../model/protocol.ts";
import type { Session } from "../../../sessions/session.ts";
import type { Handler } from "./operation.ts";
import type { OperatorHub } from "./operator-hub.ts";
import { visibleServer } from "./visible-servers.ts";

export const callTool: Handler<"callTool"> = async (input, { session, signal, onProgress }, { hub }) => {
  const { toolName, serverId, args, timeoutMs } = input;
  const name = serverId === undefined ? toolName : await publicName(hub, session, serverId, toolName);
  if (timeoutMs === undefined) return resultOf(await hub.call(session, { name, arguments: args, signal, onProgress }));
  const tooLate = new AbortController();
  const timer = setTimeout(() => tooLate.abort(late(name, timeoutMs)), timeoutMs);
  try {
    const either = AbortSignal.any([signal, tooLate.signal]);
    return resultOf(await hub.call(session, { name, arguments: args, signal: either, onProgress }));
  } finally {
    clearTimeout(timer);
  }
};

function late(name: string, timeoutMs: number): ToolcribError {
  return new ToolcribError("timeout", `${name} gave no result within ${timeoutMs} ms.`, {
    hint: "A larger timeoutMs gives it more time.",
  });
}

/** A tool's own error is a result. Everything else that is not ok is thrown, with the id under which the audit has it. */
export function resultOf<Result extends CallToolResult | ReadResourceResult>(outcome: Outcome<Result>): Result {
  if (outcome.ok) return outcome.result;
  const { code, message, hint, details } = outcome.error;
  if (code === "tool_error" && outcome.result !== undefined) return { ...outcome.result, isError: true };
  throw new ToolcribError(code, message, { hint, details: { ...details, callId: outcome.callId } });
}

/** Looked up in what the caller sees, by the server's own name of the tool or by the public one. */
async function publicName(hub: OperatorHub, session: Session, serverId: string, toolName: string): Promise<string> {
  const ofServer = (): { name: string; own: string }[] =>
    hub
      .view(session)
      .tools.flatMap(({ name, origin }) => (origin.source === serverId ? { name, own: origin.name } : []));
  const find = (): string | undefined => {
    const tools = ofServer();
    return (tools.find(({ own }) => own === toolName) ?? tools.find(({ name }) => name === toolName))?.name;
  };
  const known = find();
  if (known !== undefined) return known;
  if (ofServer().length === 0) await wake(hub, session, serverId);
  const woken = find();
  if (woken !== undefined) return woken;
  const near = nearMatches(
    toolName,
    ofServer().map(({ own }) => own),
  );
  throw new ToolcribError("not_found", `The server "${serverId}" has no tool "${toolName}".`, {
    ...(near.length === 0 ? {} : { hint: `Did you mean ${near.join(", ")}?`, details: { nearMatches: near } }),
  });
}

/** A server that waits to be asked for connects with the first call. */
async function wake(hub: OperatorHub, session: Session, serverId: string): Promise<void> {
  let info = visibleServer(hub, session, serverId);
  if (session.own.servers().some(({ id }) => id === serverId)) {
    await session.own.settled();
    info = visibleServer(hub, session, serverId);
  } else if (info.state === "idle" || info.state === "connecting") info = await hub.connect(serverId);
  if (info.status === "connected") return;
  throw new ToolcribError(
    "server_unavailable",
    `The server "${serverId}" is not connected: ${info.lastError ?? `it is ${info.state}`}`,
    { hint: info.hint, details: { server: serverId } },
  );
}
