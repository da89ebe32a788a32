/** What becomes of a source's result on its way out: the guard, hooks, taint, and the Outcome. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { inspectResult, type Untrusted } from "../guard/inspect-result.ts";
import { markOf } from "../guard/untrusted-mark.ts";
import { readableText } from "../guard/wrap/model-content.ts";
import { ToolcribError } from "../model/errors.ts";
import { isJsonObject } from "../model/json.ts";
import { isLocalSource } from "../model/local-source.ts";
import type { Outcome } from "../model/outcome.ts";
import type { CallToolResult, Result } from "../model/protocol.ts";
import type { CallInProgress, CallOptions, CallPath } from "./call-path.ts";
import type { HookCall } from "./hooks.ts";
import { RESULTS_SOURCE } from "./kept-results-source.ts";
import { keepLargeResult, LARGEST_KEPT } from "./large-result.ts";
import { taint } from "./taint.ts";
import type { Target } from "./target.ts";
import { asUntrusted, untrustedOrigin } from "./untrusted-origin.ts";

export { failed } from "./failure.ts";

/**
 * The result as it may be handed out. Throws `too_large` or `blocked` for one that may not. With `keepLarge` a tool's large
 * result becomes a short one and is kept; resources and prompts have no form for that and stay `too_large`.
 */
export async function examine(
  path: CallPath,
  call: CallInProgress,
  target: Target,
  /** As hooks see it; undefined where there are none. */
  seen: HookCall | undefined,
  raw: Result,
  options: Pick<CallOptions, "audience" | "keepLarge">,
): Promise<Result> {
  const isQuestion = raw["resultType"] === "input_required";
  // The rounds of one call need one yes.
  if (isQuestion) path.approvals.giveBack(call.id, { hasRun: true });
  else path.approvals.spend(call.id);

  const limit = path.limitValues.resultBytes;
  const mayKeep = options.keepLarge === true && call.use.kind === "tool" && !isQuestion;
  const resultBytes = isKept(target) ? Infinity : mayKeep ? Math.max(limit, LARGEST_KEPT) : limit;
  const untrusted = untrustedOf(path, target, raw, options.audience);
  const inspection = await inspectResult(raw, { resultBytes, untrusted }, nextTurn);
  call.findings = inspection.findings;
  if (inspection.verdict === "rejected") {
    const findings = inspection.findings.map(({ code, severity }) => ({ code, severity }));
    const details = findings.length === 0 ? undefined : { findings };
    throw new ToolcribError(inspection.code, inspection.message, { hint: inspection.hint, details });
  }
  const bytes = (call.resultBytes = inspection.bytes);
  taint(path, call, target);
  const passed = inspection.verdict === "changed" ? inspection.result : raw;
  // Hooks look at the whole, so that nothing is kept that they withhold.
  const whole = seen === undefined ? passed : annotated(await path.hooks.after(seen, passed, call.notes), call.notes);
  const result = isForOutside(call, target) ? withoutDetails(whole) : whole;
  if (!mayKeep || bytes <= limit) return result;
  const { name, definition } = target.capability;
  const promisesStructure = "outputSchema" in definition && definition["outputSchema"] !== undefined;
  return keepLargeResult({ session: call.session, callId: call.id, name, result, bytes, limit, promisesStructure });
}

/**
 * `details` of an in-process tool are for the program that it is part of. A server's result may have a field of that name
 * too, which goes on as it came.
 */
function isForOutside({ session }: CallInProgress, { source }: Target): boolean {
  return !session.inProcess && isLocalSource(source.id);
}

function withoutDetails(result: Result): Result {
  if (result["details"] === undefined) return result;
  const { details: _details, ...rest } = result;
  return rest;
}

function isKept({ source }: Target): boolean {
  return source.id === RESULTS_SOURCE;
}

/** What was kept has been inspected, but perhaps for a program; an agent gets it with boundaries. */
function untrustedOf(
  path: CallPath,
  target: Target,
  raw: Result,
  audience: CallOptions["audience"],
): Untrusted | undefined {
  const { source: server, name: tool } = target.capability.origin;
  if (!isKept(target)) return untrustedOrigin(path, { server, tool }, audience);
  const mark = markOf(raw);
  if (mark === undefined || mark.wrapped || audience !== "agent") return undefined;
  return asUntrusted(path, mark, audience);
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
