/**
 * The one way to run a capability. Every door calls it; nothing else calls `Source.run`.
 * It never throws: whatever happens, the call ends in exactly one Outcome and one record.
 */
import { randomBytes } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { CancelController, type CancelSignal } from "../../base/async.ts";
import { isLarge } from "../../base/json-bytes.ts";
import { originalArguments, shapedResult } from "../../catalog/overrides.ts";
import { asToolcribError, type Outcome, ToolcribError } from "../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import type { Result } from "../../model/protocol.ts";
import { asSourceUse, type Source, type Use } from "../../model/source.ts";
import type { CallFacts } from "../../policy/rule-conditions.ts";
import type { Session } from "../../sessions/session.ts";
import type { CallRecord, StartRecord } from "../../telemetry/call-record.ts";
import type { CallSpan } from "../../telemetry/tracing.ts";
import { acquireSlot, authorize, changedError, factsOf, isOfTask, isSameCapability } from "./authorize.ts";
import {
  argumentsOf,
  type CallContext,
  type CallOptions,
  type CallPath,
  publicNameOf,
  ruledNameOf,
} from "./call-context.ts";
import {
  failedOutcome,
  guardedClient,
  guardedNotice,
  guardedProgress,
  inspectCallResult,
  outcomeOf,
  taintMemory,
  withPublicUris,
} from "./call-result.ts";
import { frozenCopy, type HookCall } from "./hooks.ts";
import { locate, locateUnavailable, notFoundError, type Target } from "./locate.ts";

export async function runCall(path: CallPath, session: Session, use: Use, options: CallOptions): Promise<Outcome> {
  const { signal, dispose } = callSignal(options.signal, session);
  const call = callContext(path, session, use, options, signal);
  const span = path.tracing?.begin(call);

  let outcome: Outcome;
  try {
    checkRequest(call);
    const located = (call.target = locate(path, session, use) ?? (await locateUnavailable(path, session, use)));
    checkOrigin(located, call.origin);
    const shaping = withOriginalArguments(call, located);
    const found = (call.target = shaping instanceof Promise ? await shaping : shaping);
    // In the first moments what was read before the hub started, or at another one, is not known yet.
    const loading = session.taintScope.loading ?? path.taints.loading;
    if (loading !== undefined) await Promise.all([loading, path.taints.loading]);
    const seen = path.hooks.empty ? undefined : hookCallOf(call, found);
    // Everything after this sees the arguments that then run.
    const ready = seen === undefined ? found : await applyBeforeHooks(call, seen, found);
    const admitted = admit(call, ready);
    const target = (call.target = admitted instanceof Promise ? await admitted : admitted);
    const taken = acquireSlot(call, target);
    // A hub on its own decides at once, and its calls go on in the same turn.
    const slot = taken instanceof Promise ? await taken : taken;
    try {
      taintMemory(call, target);
      call.begun = startRecord(call);
      const recorded = path.audit.begin?.(call.begun, { arguments: argumentsOf(call.use) });
      if (recorded !== undefined) await recorded;
      const whole = await runTraced(call, target.source, target.use, span);
      // To parse it took long enough: others go before what comes next.
      if (isLarge(whole)) await nextTurn();
      const answered = target.capability.kind === "tool" ? shapedResult(target.capability, whole) : whole;
      const raw = use.kind === "completion" ? withoutHiddenCompletions(call, target, answered) : answered;
      const result = path.maskResult(withPublicUris(path.catalog, session, target.source, raw));
      outcome = outcomeOf(call, await inspectCallResult(call, target, seen, result));
    } finally {
      slot.release();
    }
  } catch (thrown) {
    outcome = await failedOutcome(call, abortReason(asToolcribError(thrown), signal));
  } finally {
    dispose();
  }
  if (call.reports !== undefined) await call.reports;
  if (session.telling !== undefined) await session.telling;
  span?.end({
    server: call.target?.capability.origin.source ?? null,
    decision: call.decision?.verdict ?? "none",
    outcome,
  });

  const record = path.hooks.persist(callRecord(call, outcome));
  if (record === undefined) path.audit.withhold?.(call.callId);
  else {
    const keepsResult = path.audit.keepsResults?.(record.origin?.source ?? null) === true;
    const recorded = path.audit.write(record, {
      arguments: argumentsOf(call.use),
      ...(keepsResult ? { result: outcome.ok ? outcome.result : (outcome.result ?? outcome.error) } : {}),
    });
    if (recorded !== undefined) await recorded;
  }
  return outcome;
}

function callContext(
  path: CallPath,
  session: Session,
  use: Use,
  options: CallOptions,
  signal: CancelSignal,
): CallContext {
  const { client = session.client, clientInfo = session.clientInfo, onProgress, onNotice } = options;
  const startedAt = path.clock.now();
  // Each by its name: `...options` would cost more than all the rest, and take along what else a request has.
  const call: CallContext = {
    extra: options.extra,
    meta: options.meta,
    logLevel: options.logLevel,
    input: options.input,
    tasks: options.tasks,
    keepLarge: options.keepLarge,
    onAsk: options.onAsk,
    audience: options.audience,
    requestId: options.requestId,
    protocolVersion: options.protocolVersion,
    origin: options.origin,
    path,
    callId: newCallId(startedAt),
    session,
    name: publicNameOf(use),
    use,
    signal,
    client: client && guardedClient(() => call, client),
    clientInfo,
    onProgress: onProgress && ((report) => passOn(call, guardedProgress(call, report), onProgress)),
    onNotice:
      onNotice &&
      ((method, params) =>
        passOn(call, guardedNotice(call, method, path.mask(params)), (seen) => onNotice(method, seen))),
    confirm: () => confirmTarget(call),
    startedAt,
    target: undefined,
    decision: undefined,
    begun: undefined,
    waitedMs: 0,
    resultBytes: 0,
    findings: [],
    forgedMarkers: 0,
    notes: {},
    reports: undefined,
  } satisfies CallContext & Record<keyof CallOptions, unknown>;
  return call;
}

function passOn<Report>(call: CallContext, report: Report | Promise<Report>, deliver: (report: Report) => void): void {
  if (!(report instanceof Promise) && call.reports === undefined) return deliver(report);
  // One that cannot be read is dropped: it is a line, and the result is still to come.
  call.reports = Promise.all([report, call.reports])
    .then(([seen]) => deliver(seen))
    .catch(() => {});
}

/**
 * The target with the arguments that its server gets, and the call with them: from here on rules, hooks and records see these.
 * What the session does not see is refused by the rules, without a word on its arguments.
 */
function withOriginalArguments(call: CallContext, target: Target): Target | Promise<Target> {
  const { path, session, use } = call;
  const { capability } = target;
  if (use.kind !== "tool" || capability.kind !== "tool" || capability.shape === undefined) return target;
  if (!path.access.shows(session, capability)) return target;
  const take = (args: Readonly<JsonObject>): Target => {
    call.use = { ...use, arguments: args };
    return { ...target, use: { ...target.use, arguments: args } as Use };
  };
  const mapped = originalArguments(capability, use.arguments, (text, level) =>
    path.resolve(text, { user: session.user, server: level === "server" ? capability.origin.source : undefined }),
  );
  return mapped instanceof Promise ? mapped.then(take) : take(mapped);
}

/** Runs the use; traced, the source gets a `_meta` that continues the trace. */
function runTraced(call: CallContext, source: Source, use: Use, span: CallSpan | undefined): Promise<Result> {
  const asked = asSourceUse(use);
  if (span === undefined) return source.run(asked, call);
  return span.run(source, use, call.meta, (meta, onSent) => source.run(asked, { ...call, meta, onSent }));
}

/** For a server that was started for the call, and may list other things than those that were known of it. */
async function confirmTarget(call: CallContext): Promise<void> {
  const { path, session, use, target: before } = call;
  const now = locate(path, session, use);
  if (before === undefined || (now !== undefined && isSameCapability(now, before))) return;
  const isThere = now?.source.id === before.source.id && isDeepStrictEqual(now.use, before.use);
  if (now === undefined || !isThere) throw notFoundError(use, path.visibleNames(session, use.kind));
  call.target = await admit(call, now);
  call.begun &&= startRecord(call);
}

/** The target, once it is allowed or approved with the arguments that it has now. */
function admit(call: CallContext, found: Target): Target | Promise<Target> {
  const { path, session } = call;
  if (!path.access.isConditional(session, found.capability, ruledNameOf(call))) return decided(call, found, undefined);
  // What runs is what rules have looked at, whatever the caller does with its own object meanwhile.
  call.use = frozenCopy(call.use);
  const target = locate(path, session, call.use);
  if (target === undefined || !isSameCapability(target, found)) throw changedError(call.name);
  const facts = factsOf(call, target);
  return facts instanceof Promise ? facts.then((known) => decided(call, target, known)) : decided(call, target, facts);
}

function decided(call: CallContext, found: Target, facts: CallFacts | undefined): Target | Promise<Target> {
  const { path, session } = call;
  call.decision = path.access.decide(session, found.capability, ruledNameOf(call), argumentsOf(found.use), facts);
  if (call.decision.verdict !== "allow") return authorize(call, found);
  // In the same turn as the decision, so that calls at once do not pass a limit together.
  if (!isOfTask(found.use)) path.access.count(session, found.capability);
  return found;
}

type StartedCall = Partial<Pick<CallContext, "clientInfo">> &
  Pick<CallContext, "callId" | "session" | "name" | "use" | "startedAt" | "target" | "decision">;

/** The record of a call that is about to reach its source. */
export function startRecord({
  callId,
  session,
  clientInfo,
  name,
  use,
  startedAt,
  target,
  decision,
}: StartedCall): StartRecord {
  return {
    callId,
    time: millisecond(startedAt).iso,
    session: session.id,
    door: session.door,
    role: session.role ?? null,
    user: session.user ?? null,
    client: clientInfo && { name: clientInfo.name, version: clientInfo.version },
    kind: use.kind,
    name,
    origin: target?.capability.origin ?? null,
    decision: decision?.verdict ?? "none",
    rule: decision?.rule ?? null,
  };
}

/** The record of a call that has ended. */
function callRecord(call: CallContext, outcome: Outcome): CallRecord {
  return {
    ...(call.begun ?? startRecord(call)),
    outcome: outcome.ok ? "ok" : outcome.error.code,
    durationMs: call.path.clock.now() - call.startedAt,
    ...(call.waitedMs === 0 ? {} : { waitedMs: call.waitedMs }),
    ...(!outcome.ok && outcome.error.details?.["pendingApproval"] === true ? { isHeld: true } : {}),
    resultBytes: call.resultBytes,
    findings: call.findings.map(({ code, severity, place, score }) => ({ code, severity, place, score })),
    ...(call.forgedMarkers === 0 ? {} : { forgedMarkers: call.forgedMarkers }),
    notes: call.notes,
  };
}

/** Hexadecimal digits of a call id after its time and version. */
const RANDOM_DIGITS = 19;
let randomDigits = "";
let usedDigits = 0;

/** A UUID of version 7: those of later calls sort behind, so that an index over them grows at its end. */
function newCallId(now: number): string {
  if (usedDigits + RANDOM_DIGITS > randomDigits.length) {
    randomDigits = randomBytes(RANDOM_DIGITS * 64).toString("hex");
    usedDigits = 0;
  }
  const at = usedDigits;
  usedDigits += RANDOM_DIGITS;
  const variant = "89ab".charAt(randomDigits.charCodeAt(at) & 3);
  const digits = (from: number, to: number): string => randomDigits.slice(at + from, at + to);
  return `${millisecond(now).idStart}-7${digits(1, 4)}-${variant}${digits(4, 7)}-${digits(7, RANDOM_DIGITS)}`;
}

interface Millisecond {
  readonly time: number;
  readonly iso: string;
  /** The first two groups of the ids of calls that begin in it. */
  readonly idStart: string;
}

let lastMillisecond: Millisecond = { time: Number.NaN, iso: "", idStart: "" };

/** Many calls begin in one. */
function millisecond(time: number): Millisecond {
  if (time === lastMillisecond.time) return lastMillisecond;
  const hex = Math.max(0, Math.floor(time)).toString(16).padStart(12, "0").slice(-12);
  lastMillisecond = { time, iso: isoTime(time), idStart: `${hex.slice(0, 8)}-${hex.slice(8)}` };
  return lastMillisecond;
}

let lastSecond = Number.NaN;
let secondText = "";

/** Dates are written out by V8 for a good part of what a call costs, and differ in three digits. */
function isoTime(time: number): string {
  const second = Math.floor(time / 1000);
  if (second !== lastSecond) {
    secondText = new Date(time).toISOString().slice(0, -"000Z".length);
    lastSecond = second;
  }
  return `${secondText}${String(Math.floor(time) - second * 1000).padStart(3, "0")}Z`;
}

/** A completion does not suggest what the session may not see. */
function withoutHiddenCompletions(call: CallContext, target: Target, result: Result): Result {
  const { path, session, use } = call;
  if (use.kind !== "completion" || use.ref.type !== "ref/resource") return result;
  const { completion } = result;
  if (!isJsonObject(completion) || !Array.isArray(completion["values"])) return result;
  const given: unknown[] = completion["values"];
  const values = given.filter((value) => {
    const argument = { ...use.argument, value: String(value) };
    return path.access.shows(session, target.capability, ruledNameOf({ ...call, use: { ...use, argument } }));
  });
  if (values.length === given.length) return result;
  const { total: _total, ...rest } = completion;
  return { ...result, completion: { ...rest, values } };
}

/** Names can change hands, such as to a server that the hub has got meanwhile. */
function checkOrigin({ capability: { name, origin } }: Target, wanted: CallOptions["origin"]): void {
  if (wanted === undefined || (wanted.source === origin.source && wanted.name === origin.name)) return;
  throw new ToolcribError("not_found", `The name "${name}" is no longer that of the tool that was chosen.`, {
    hint: "List the tools again: the one that is meant may have another name now.",
  });
}

/** Doors and programs hand over what they were given, so the request itself may be wrong. */
function checkRequest({ session, signal, use }: CallContext): void {
  if (signal.aborted) {
    const reason = session.closed ? "The session is closed." : "The call was cancelled before it began.";
    throw new ToolcribError("cancelled", reason);
  }
  if (use.kind !== "tool" && use.kind !== "prompt") return;
  if (typeof use.name !== "string")
    throw new ToolcribError("invalid_arguments", `The name of a ${use.kind} must be text.`);
  const isLeftOut = use.kind === "prompt" && use.arguments === undefined;
  if (!isLeftOut && !isJsonObject(use.arguments)) {
    throw new ToolcribError("invalid_arguments", `The arguments of ${use.name} must be an object.`);
  }
}

/** The signal of one call: ends with the caller's own, or with the session. */
interface CallSignal {
  readonly signal: CancelSignal;
  /** Lets go of both. A long-lived signal that serves many calls must not collect listeners. */
  dispose(): void;
}

/**
 * AbortSignal.any would do, but it keeps a weak entry on each source until garbage collection. The session keeps a set
 * instead of being listened to, because removing one of thousands of listeners means looking for it.
 */
export function callSignal(callers: CancelSignal | undefined, session: Session): CallSignal {
  const signal = new CancelController();
  const abort = (): void => signal.abort(callers?.reason);
  if (session.closed) signal.abort();
  else if (callers?.aborted === true) abort();
  else {
    session.running.add(signal);
    callers?.addEventListener("abort", abort, { once: true });
  }
  return {
    signal,
    dispose() {
      session.running.delete(signal);
      callers?.removeEventListener("abort", abort);
    },
  };
}

/** Why a call was given up is its caller's to say, as with a time that ran out: it is the reason of its signal. */
function abortReason(error: ToolcribError, { reason }: CancelSignal): ToolcribError {
  return error.code === "cancelled" && reason instanceof ToolcribError ? reason : error;
}

/** A call in the form that hooks see. */
function hookCallOf({ callId, session, name, use }: CallContext, target: Target): HookCall {
  return {
    callId,
    session: {
      id: session.id,
      door: session.door,
      owner: session.owner,
      role: session.role,
    },
    kind: use.kind,
    name,
    origin: target.capability.origin,
    arguments: argumentsOf(use),
  };
}

/** The call with the arguments that hooks leave, and what it leads to now. */
async function applyBeforeHooks(call: CallContext, seen: HookCall, found: Target): Promise<Target> {
  const { path, session, notes, use } = call;
  // What is denied whatever its arguments are is no business of hooks.
  if (path.access.decide(session, found.capability, ruledNameOf(call)).verdict === "deny") return found;
  const args = await path.hooks.before(seen, notes);
  if (use.kind === "tool") call.use = { ...use, arguments: args };
  // Hooks only leave arguments out, so the values of a prompt are still the strings they were.
  else if (use.kind === "prompt" && use.arguments !== undefined)
    call.use = { ...use, arguments: args as Record<string, string> };
  const target = locate(path, session, call.use);
  if (target === undefined || !isSameCapability(target, found)) throw changedError(call.name);
  return target;
}
