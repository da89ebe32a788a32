/**
 * The one way to run a capability. Every door calls it; nothing else calls `Source.run`.
 * It never throws: whatever happens, the call ends in exactly one Outcome and one record.
 */
import { randomUUID } from "node:crypto";
import type { Catalog } from "../catalog/catalog.ts";
import { inspectResult } from "../guard/inspect-result.ts";
import type { Clock } from "../model/clock.ts";
import type { GuardRules, Limits as LimitValues } from "../model/config.ts";
import { resultText } from "../model/content.ts";
import type { Decision } from "../model/decision.ts";
import { asToolcribError, ToolcribError } from "../model/errors.ts";
import type { Finding } from "../model/finding.ts";
import { isJsonObject, type JsonObject } from "../model/json.ts";
import type { Outcome } from "../model/outcome.ts";
import type { Progress, Result } from "../model/protocol.ts";
import type { Use } from "../model/source.ts";
import type { Limits } from "../policy/limits.ts";
import type { Session } from "../sessions/session.ts";
import type { AuditSink, CallRecord } from "../telemetry/call-record.ts";
import { linkSignals } from "./abort.ts";
import type { Approvals } from "./approvals.ts";
import type { Gate } from "./gate.ts";
import type { HookCall, HookChain } from "./hooks.ts";
import { locate, notFound } from "./locate.ts";
import { isSearchTool } from "./search-definitions.ts";
import type { SearchTools } from "./search-tools.ts";
import type { Target } from "./target.ts";

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((progress: Progress) => void) | undefined;
  /** `_meta` that goes upstream with the request, such as trace context. */
  readonly meta?: JsonObject | undefined;
  /** Who reads the result: an agent's model gets untrusted text between boundary markers. */
  readonly audience?: "agent" | undefined;
}

export interface CallPath {
  readonly catalog: Catalog;
  readonly gate: Gate;
  readonly approvals: Approvals;
  readonly limits: Limits;
  readonly limitValues: LimitValues;
  readonly guard: GuardRules;
  /** Sources whose results are taken as they are. */
  readonly isTrusted: (source: string) => boolean;
  readonly hooks: HookChain;
  readonly audit: AuditSink;
  readonly clock: Clock;
  /** Names this session may see, for near matches. */
  readonly visibleNames: (session: Session, kind: Use["kind"]) => readonly string[];
  /** There with `tools.max` only. */
  readonly searchTools?: SearchTools | undefined;
}

/** What is learned of a call on its way, for the record. */
interface Trail {
  target: Target | undefined;
  decision: Decision | undefined;
  resultBytes: number;
  findings: readonly Finding[];
  readonly notes: Record<string, unknown>;
}

export async function runCall(path: CallPath, session: Session, use: Use, options: CallOptions): Promise<Outcome> {
  const callId = randomUUID();
  const startedAt = path.clock.now();
  const trail: Trail = { target: undefined, decision: undefined, resultBytes: 0, findings: [], notes: {} };
  const link = linkSignals([options.signal, session.closing]);

  let outcome: Outcome;
  try {
    if (link.signal.aborted) throw cancelled(session);
    const target = (trail.target = locate(path, session, use));
    const decision = (trail.decision = path.gate.decide(session, target.capability));
    await admit(path, session, { callId, use, target, decision }, link.signal);
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
        ...(options.audience === undefined ? {} : { audience: options.audience }),
      });
      result = await inspect(path, { hookCall, target, audience: options.audience }, raw, trail);
      taint(path, session, hookCall, target);
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

interface Considered {
  readonly callId: string;
  readonly use: Use;
  readonly target: Target;
  readonly decision: Decision;
}

/** An operator learns which rule denied; to anyone else what is denied does not exist. */
async function admit(path: CallPath, session: Session, call: Considered, signal: AbortSignal): Promise<void> {
  const { decision, use } = call;
  if (decision.verdict === "allow") return;
  if (decision.verdict === "deny" && !session.owner && !path.gate.shows(session, call.target.capability)) {
    throw notFound(use, path.visibleNames(session, use.kind));
  }
  const { rule } = decision;
  const name = publicNameOf(use);
  if (decision.verdict === "deny") {
    throw new ToolcribError("denied", `Policy denies ${name}: ${rule.list} "${rule.pattern}" in ${rule.where}.`, {
      hint: `\`toolcrib policy explain ${name}\` says why. Change the rule if this should be allowed.`,
      details: { rule },
    });
  }
  const reason = `${name} needs a yes first: ${rule.list} "${rule.pattern}" in ${rule.where}.`;
  const question = { callId: call.callId, name, origin: call.target.capability.origin, arguments: argumentsOf(use), rule, reason };
  await path.approvals.ask(session, question, signal);
}

function takeSlot(path: CallPath, session: Session, target: Target): { release(): void } {
  // Searching reaches no server, and the call that `toolcrib_call` runs takes its own slot.
  if (isSearchTool(target.capability)) return { release: () => {} };
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

interface Answered {
  readonly hookCall: HookCall;
  readonly target: Target;
  readonly audience: CallOptions["audience"];
}

async function inspect(path: CallPath, { hookCall, target, audience }: Answered, raw: Result, trail: Trail): Promise<Result> {
  const { source, name } = target.capability.origin;
  const { wrap, onSuspicious } = path.guard;
  const inspection = inspectResult(raw, {
    resultBytes: path.limitValues.resultBytes,
    untrusted: path.isTrusted(source)
      ? undefined
      : {
          server: source,
          tool: name,
          boundary: randomUUID(),
          wrap: wrap === "all" || (wrap === "agents" && audience === "agent"),
          onSuspicious,
        },
  });
  trail.findings = inspection.findings;
  if (inspection.verdict === "rejected") {
    const findings = inspection.findings.map(({ code, severity }) => ({ code, severity }));
    const details = findings.length === 0 ? undefined : { findings };
    throw new ToolcribError(inspection.code, inspection.message, { hint: inspection.hint, details });
  }
  trail.resultBytes = inspection.bytes;
  const passed = inspection.verdict === "changed" ? inspection.result : raw;
  if (path.hooks.empty) return passed;
  const result = await path.hooks.after(hookCall, passed, trail.notes);
  if (Object.keys(trail.notes).length === 0) return result;
  const meta = isJsonObject(result["_meta"]) ? result["_meta"] : {};
  return { ...result, _meta: { ...meta, "toolcrib/notes": trail.notes } };
}

/** From now on the session holds content that anyone may have written. */
function taint(path: CallPath, session: Session, { callId, name }: HookCall, { capability }: Target): void {
  if (session.taint !== null || path.isTrusted(capability.origin.source) || !path.gate.isOpenWorld(capability)) return;
  session.markTainted({ callId, name, at: path.clock.now() });
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
    arguments: argumentsOf(use),
  };
}

function argumentsOf(use: Use): Readonly<JsonObject> {
  return use.kind === "tool" || use.kind === "prompt" ? use.arguments : {};
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
    user: session.user ?? null,
    kind: use.kind,
    name: publicNameOf(use),
    origin: trail.target?.capability.origin ?? null,
    decision: trail.decision?.verdict ?? "none",
    rule: trail.decision?.rule ?? null,
    outcome: outcome.ok ? "ok" : outcome.error.code,
    durationMs: path.clock.now() - startedAt,
    resultBytes: trail.resultBytes,
    findings: trail.findings.map(({ code, severity }) => ({ code, severity })),
    notes: trail.notes,
  };
  const kept = path.hooks.persist(whole);
  if (kept !== undefined) path.audit.write(kept, { arguments: argumentsOf(use) });
}
