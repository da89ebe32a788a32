/** What becomes of a source's result on its way out: the guard, hooks, taint, and the Outcome. */
import { randomUUID } from "node:crypto";
import { inspectResult, type InspectionOptions } from "../guard/inspect-result.ts";
import { mapStrings } from "../guard/result-texts.ts";
import { resultText } from "../model/content.ts";
import { type ErrorObject, ToolcribError } from "../model/errors.ts";
import { isJsonObject } from "../model/json.ts";
import type { Outcome } from "../model/outcome.ts";
import type { CallToolResult, Result } from "../model/protocol.ts";
import type { CallInProgress, CallOptions, CallPath } from "./call-path.ts";
import type { HookCall } from "./hooks.ts";
import type { Target } from "./target.ts";

/** The result as it may be handed out. Throws `too_large` or `blocked` for one that may not. */
export async function examine(
  path: CallPath,
  call: CallInProgress,
  target: Target,
  seen: HookCall,
  raw: Result,
  audience: CallOptions["audience"],
): Promise<Result> {
  const inspection = inspectResult(raw, optionsFor(path, target, audience));
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

/** From now on the session holds content that anyone may have written. */
function taint(path: CallPath, { id, session, startedAt }: CallInProgress, { capability }: Target): void {
  if (session.taint !== null || path.isTrusted(capability.origin.source) || !path.gate.isOpenWorld(capability)) return;
  session.markTainted({ callId: id, name: capability.name, at: startedAt });
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
  return { ok: false, callId, error: { code: "tool_error", message: resultText(answer) }, result: answer };
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

/**
 * An error that a server worded is as untrusted as a result: it is scanned, and wrapped for agents, like one. Secrets are
 * masked in every error, whoever worded it.
 */
export function failed(path: CallPath, call: CallInProgress, error: ToolcribError, audience: CallOptions["audience"]): Outcome {
  const { id: callId, target } = call;
  // Strings become strings and nothing else changes, so it is an ErrorObject still.
  const plain = mapStrings(error.toObject(), path.mask) as ErrorObject;
  if (target === undefined || plain.details?.["rpc"] === undefined || path.isTrusted(target.capability.origin.source)) {
    return { ok: false, callId, error: plain };
  }
  taint(path, call, target);
  const inspection = inspectResult({ content: [{ type: "text", text: plain.message }] }, optionsFor(path, target, audience));
  call.findings = inspection.findings;
  if (inspection.verdict === "rejected") {
    const { code, message, hint } = inspection;
    return { ok: false, callId, error: { code, message, hint } };
  }
  const { content } = inspection.verdict === "changed" ? withContent(inspection.result) : { content: [] };
  const message = content[0]?.["text"];
  return { ok: false, callId, error: { ...plain, message: typeof message === "string" ? message : plain.message } };
}

function optionsFor(path: CallPath, { capability }: Target, audience: CallOptions["audience"]): InspectionOptions {
  const { source: server, name: tool } = capability.origin;
  const { wrap, onSuspicious } = path.guard;
  const wraps = wrap === "all" || (wrap === "agents" && audience === "agent");
  const untrusted = { server, tool, boundary: randomUUID(), wrap: wraps, onSuspicious };
  return { resultBytes: path.limitValues.resultBytes, untrusted: path.isTrusted(server) ? undefined : untrusted };
}
