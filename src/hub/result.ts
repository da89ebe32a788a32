/** What becomes of a source's result on its way out: the guard, hooks, taint, and the Outcome. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { inspectResult } from "../guard/inspect-result.ts";
import { readableText } from "../guard/wrap/model-content.ts";
import { ToolcribError } from "../model/errors.ts";
import { isJsonObject } from "../model/json.ts";
import type { Outcome } from "../model/outcome.ts";
import type { CallToolResult, Result } from "../model/protocol.ts";
import type { CallInProgress, CallOptions, CallPath } from "./call-path.ts";
import type { HookCall } from "./hooks.ts";
import { taint } from "./taint.ts";
import type { Target } from "./target.ts";
import { untrustedOrigin } from "./untrusted-origin.ts";

export { failed } from "./failure.ts";

/** The result as it may be handed out. Throws `too_large` or `blocked` for one that may not. */
export async function examine(
  path: CallPath,
  call: CallInProgress,
  target: Target,
  seen: HookCall,
  raw: Result,
  audience: CallOptions["audience"],
): Promise<Result> {
  const { source: server, name: tool } = target.capability.origin;
  const untrusted = untrustedOrigin(path, { server, tool }, audience);
  const inspection = await inspectResult(raw, { resultBytes: path.limitValues.resultBytes, untrusted }, nextTurn);
  call.findings = inspection.findings;
  if (inspection.verdict === "rejected") {
    const findings = inspection.findings.map(({ code, severity }) => ({ code, severity }));
    const details = findings.length === 0 ? undefined : { findings };
    throw new ToolcribError(inspection.code, inspection.message, { hint: inspection.hint, details });
  }
  call.resultBytes = inspection.bytes;
  taint(path, call, target);
  const passed = inspection.verdict === "changed" ? inspection.result : raw;
  return path.hooks.empty ? passed : annotated(await path.hooks.after(seen, passed, call.notes), call.notes);
}

function annotated(result: Result, notes: Readonly<Record<string, unknown>>): Result {
  if (Object.keys(notes).length === 0) return result;
  const meta = isJsonObject(result["_meta"]) ? result["_meta"] : {};
  return { ...result, _meta: { ...meta, "toolcrib/notes": notes } };
}

export function conclude({ id: callId, use }: CallInProgress, result: Result): Outcome {
  if (use.kind !== "tool") return { ok: true, callId, result };
  const answer = withContent(result);
  if (answer.isError !== true) return { ok: true, callId, result: answer };
  return { ok: false, callId, error: { code: "tool_error", message: readableText(answer) }, result: answer };
}

/** A tool's result must have content; that of an old or careless server gets an empty list, and loses nothing by it. */
function withContent(result: Result): CallToolResult {
  const { content } = result;
  if (Array.isArray(content) && content.every(isJsonObject)) {
    // Blocks may lack a `type`; whoever reads one treats it as a type that nobody knows.
    return result as CallToolResult;
  }
  return { ...result, content: Array.isArray(content) ? content.filter(isJsonObject) : [] } as CallToolResult;
}
