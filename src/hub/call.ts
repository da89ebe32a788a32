/**
 * The one way to run a capability. Every door calls it; nothing else calls `Source.run`.
 * It never throws: whatever happens, the call ends in exactly one Outcome and one record.
 */
import { randomUUID } from "node:crypto";
import type { Catalog } from "../catalog/catalog.ts";
import { inspectResult } from "../guard/inspect-result.ts";
import type { Clock } from "../model/clock.ts";
import type { Limits as LimitValues } from "../model/config.ts";
import { resultText } from "../model/content.ts";
import type { Decision } from "../model/decision.ts";
import { asToolcribError, ToolcribError } from "../model/errors.ts";
import { isJsonObject, type JsonObject } from "../model/json.ts";
import type { Outcome } from "../model/outcome.ts";
import type { Progress, Result } from "../model/protocol.ts";
import type { Use } from "../model/source.ts";
import type { Policy } from "../policy/decide.ts";
import type { Limits } from "../policy/limits.ts";
import type { Session } from "../sessions/session.ts";
import type { AuditSink, CallRecord } from "../telemetry/call-record.ts";
import { linkSignals } from "./abort.ts";
import type { HookCall, HookChain } from "./hooks.ts";
import { locate, notFound, subjectOf } from "./locate.ts";
import type { Target } from "./target.ts";

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((progress: Progress) => void) | undefined;
  /** `_meta` that goes upstream with the request, such as trace context. */
  readonly meta?: JsonObject | undefined;
}

export interface CallPath {
  readonly catalog: Catalog;
  readonly policy: Policy;
  readonly limits: Limits;
  readonly limitValues: LimitValues;
  readonly hooks: HookChain;
  readonly audit: AuditSink;
  readonly clock: Clock;
  /** Names this session may see, for near matches. */
  readonly visibleNames: (session: Session, kind: Use["kind"]) => readonly string[];
  readonly isOwnerOnly: (toolName: string) => boolean;
}

/** What is learned of a call on its way, for the record. */
interface Trail {
  target: Target | undefined;
  decision: Decision | undefined;
  resultBytes: number;
  readonly notes: Record<string, unknown>;
}

export async function runCall(path: CallPath, session: Session, use: Use, options: CallOptions): Promise<Outcome> {
  const callId = randomUUID();
  const startedAt = path.clock.now();
  const trail: Trail = { target: undefined, decision: undefined, resultBytes: 0, notes: {} };
  const link = linkSignals([options.signal, session.closing]);

  let outcome: Outcome;
  try {
    if (link.signal.aborted) throw cancelled(session);
    const target = (trail.target = locate(path, session, use));
    allow(path, session, use, (trail.decision = decide(path, session, target)));
    const slot = takeSlot(path, session, target);
    let result: Result;
    try {
      const hookCall = describe(callId, session, use, target);
      const narrowed = await narrowUse(path, hookCall, target.use, trail);
      const raw = await target.source.run(narrowed, {
        callId,
        session,
        signal: link.signal,
        ...(options.onProgress === undefined ? {} : { onProgress: options.onProgress }),
        ...(options.meta === undefined ? {} : { meta: options.meta }),
      });
      result = await inspect(path, hookCall, raw, trail);
    } finally {
      slot.release();
    }
    outcome = conclude(callId, use, result);
  } catch (thrown) {
    outcome = { ok: false, callId, error: asToolcribError(thrown).toObject() };
  } finally {
    link.dispose();
  }

  record(path, { callId, startedAt, session, use, trail, outcome });
  return outcome;
}

function decide(path: CallPath, session: Session, target: Target): Decision {
  return path.policy.decide(subjectOf(target.capability, path.isOwnerOnly), session);
}

/** An operator learns which rule denied; to anyone else what is denied does not exist. */
function allow(path: CallPath, session: Session, use: Use, decision: Decision): void {
  if (decision.verdict === "allow") return;
  if (!session.owner) throw notFound(use, path.visibleNames(session, use.kind));
  const { rule } = decision;
  throw new ToolcribError("denied", `Policy denies ${publicNameOf(use)}: ${rule.list} "${rule.pattern}" in ${rule.where}.`, {
    hint: `Change the rule in ${rule.where} if this should be allowed.`,
    details: { rule },
  });
}

function takeSlot(path: CallPath, session: Session, target: Target): { release(): void } {
  const taken = path.limits.take(target.source.id, session.id);
  if (taken.ok) return taken;
  const seconds = Math.ceil(taken.retryAfterMs / 1000);
  throw new ToolcribError("rate_limited", `Limit reached: ${taken.what}.`, {
    hint: seconds > 0 ? `Try again in ${seconds} s.` : "Try again when a call has ended.",
    details: { retryAfterMs: taken.retryAfterMs },
  });
}

async function narrowUse(path: CallPath, call: HookCall, use: Use, trail: Trail): Promise<Use> {
  if (path.hooks.empty) return use;
  const args = await path.hooks.before(call, trail.notes);
  if (use.kind === "tool") return { ...use, arguments: args };
  // Hooks only leave arguments out, so the values of a prompt are still the strings they were.
  if (use.kind === "prompt") return { ...use, arguments: args as Record<string, string> };
  return use;
}

async function inspect(path: CallPath, call: HookCall, raw: Result, trail: Trail): Promise<Result> {
  const inspection = inspectResult(raw, { resultBytes: path.limitValues.resultBytes });
  if (inspection.verdict === "rejected") {
    throw new ToolcribError(inspection.code, inspection.message, { hint: inspection.hint });
  }
  trail.resultBytes = inspection.bytes;
  const passed = inspection.verdict === "changed" ? inspection.result : raw;
  if (path.hooks.empty) return passed;
  const result = await path.hooks.after(call, passed, trail.notes);
  if (Object.keys(trail.notes).length === 0) return result;
  const meta = isJsonObject(result["_meta"]) ? result["_meta"] : {};
  return { ...result, _meta: { ...meta, "toolcrib/notes": trail.notes } };
}

function conclude(callId: string, use: Use, result: Result): Outcome {
  if (use.kind !== "tool" || result["isError"] !== true) return { ok: true, callId, result };
  const content = Array.isArray(result["content"]) ? result["content"] : [];
  return { ok: false, callId, error: { code: "tool_error", message: resultText({ ...result, content }) }, result };
}

function describe(callId: string, session: Session, use: Use, target: Target): HookCall {
  return {
    callId,
    session: {
      id: session.id,
      door: session.door,
      owner: session.owner,
      ...(session.role === undefined ? {} : { role: session.role }),
    },
    kind: use.kind,
    name: publicNameOf(use),
    origin: target.capability.origin,
    arguments: use.kind === "tool" || use.kind === "prompt" ? use.arguments : {},
  };
}

function cancelled(session: Session): ToolcribError {
  return new ToolcribError("cancelled", session.closed ? "The session is closed." : "The call was cancelled before it began.");
}

export function publicNameOf(use: Use): string {
  switch (use.kind) {
    case "tool":
    case "prompt":
      return use.name;
    case "resource":
    case "subscribe":
    case "unsubscribe":
      return use.uri;
    case "completion":
      return use.ref.type === "ref/prompt" ? use.ref.name : use.ref.uri;
  }
}

interface Finished {
  readonly callId: string;
  readonly startedAt: number;
  readonly session: Session;
  readonly use: Use;
  readonly trail: Trail;
  readonly outcome: Outcome;
}

function record(path: CallPath, { callId, startedAt, session, use, trail, outcome }: Finished): void {
  const whole: CallRecord = {
    callId,
    time: new Date(startedAt).toISOString(),
    session: session.id,
    door: session.door,
    role: session.role ?? null,
    kind: use.kind,
    name: publicNameOf(use),
    origin: trail.target?.capability.origin ?? null,
    decision: trail.decision?.verdict ?? "none",
    rule: trail.decision?.rule ?? null,
    outcome: outcome.ok ? "ok" : outcome.error.code,
    durationMs: path.clock.now() - startedAt,
    resultBytes: trail.resultBytes,
    notes: trail.notes,
  };
  const kept = path.hooks.persist(whole);
  if (kept !== undefined) path.audit.write(kept);
}
