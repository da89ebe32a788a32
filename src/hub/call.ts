/**
 * The one way to run a capability. Every door calls it; nothing else calls `Source.run`.
 * It never throws: whatever happens, the call ends in exactly one Outcome and one record.
 */
import { randomUUID } from "node:crypto";
import { asToolcribError, ToolcribError } from "../model/errors.ts";
import { isJsonObject } from "../model/json.ts";
import type { Outcome } from "../model/outcome.ts";
import type { Result } from "../model/protocol.ts";
import type { Use, UseContext } from "../model/source.ts";
import type { Session } from "../sessions/session.ts";
import { callSignal, givenUpFor } from "./abort.ts";
import { admit, takeSlot } from "./admit.ts";
import { argumentsOf, type CallInProgress, type CallOptions, type CallPath, ruledNameOf } from "./call-path.ts";
import { recordOf, startOf } from "./call-records.ts";
import { beginSpan, endSpan, runIn } from "./call-span.ts";
import { describeCall, narrowUse } from "./hook-call.ts";
import { locate, locateAbsent } from "./locate.ts";
import { guardedProgress } from "./progress.ts";
import { withPublicUris } from "./public-uris.ts";
import { conclude, examine, failed } from "./result.ts";
import type { Target } from "./target.ts";

export async function runCall(path: CallPath, session: Session, use: Use, options: CallOptions): Promise<Outcome> {
  const link = callSignal(options.signal, session);
  const call: CallInProgress = {
    id: randomUUID(),
    session,
    use,
    startedAt: path.clock.now(),
    signal: link.signal,
    onAsk: options.onAsk,
    target: undefined,
    decision: undefined,
    resultBytes: 0,
    findings: [],
    notes: {},
  };
  const span = beginSpan(path, call, options.meta);

  let outcome: Outcome;
  try {
    checkRequest(call);
    const found = (call.target = locate(path, session, use) ?? (await locateAbsent(path, session, use)));
    checkOrigin(found, options.origin);
    call.decision = path.gate.decide(session, found.capability, ruledNameOf(use));
    const target = (call.target = call.decision.verdict === "allow" ? found : await admit(path, call, found));
    const taken = takeSlot(path, call, target);
    // A hub on its own decides at once, and its calls go on in the same turn.
    const slot = taken instanceof Promise ? await taken : taken;
    try {
      const seen = path.hooks.empty ? undefined : describeCall(call, target);
      const narrowed = seen === undefined ? target.use : await narrowUse(path, seen, target.use, call.notes);
      const recorded = path.audit.begin?.(startOf(call), { arguments: argumentsOf(call.use) });
      if (recorded !== undefined) await recorded;
      const answered = await runIn(span, target.source, narrowed, contextOf(path, call, target, options));
      const raw = withoutHidden(path, call, target, answered);
      const result = path.maskResult(withPublicUris(path.catalogOf(session), session, target.source, raw));
      outcome = conclude(call, await examine(path, call, target, seen, result, options));
    } finally {
      slot.release();
    }
  } catch (thrown) {
    const error = givenUpFor(asToolcribError(thrown), call.signal);
    outcome = failed(path, call, error, options.audience);
  } finally {
    link.dispose();
  }
  if (session.telling !== undefined) await session.telling;
  endSpan(span, call, outcome);

  const record = path.hooks.persist(recordOf(call, outcome, path.clock.now()));
  if (record === undefined) path.audit.withhold?.(call.id);
  else path.audit.write(record, { arguments: argumentsOf(call.use) });
  return outcome;
}

/** What the source learns of the call. */
function contextOf(path: CallPath, call: CallInProgress, target: Target, options: CallOptions): UseContext {
  const { onProgress, meta, audience, client, onNotice, logLevel, input, extra, keepLarge, onAsk } = options;
  return {
    callId: call.id,
    session: call.session,
    client: client ?? call.session.client,
    signal: call.signal,
    onProgress: onProgress && ((report) => onProgress(guardedProgress(path, target, audience, report))),
    onNotice: onNotice && ((method, params) => onNotice(method, path.mask(params))),
    meta,
    logLevel,
    input,
    extra,
    keepLarge,
    onAsk,
    audience,
  };
}

/** What a completion would lead to and the session may not see is not suggested either. */
function withoutHidden({ gate }: CallPath, { session, use }: CallInProgress, target: Target, result: Result): Result {
  if (use.kind !== "completion" || use.ref.type !== "ref/resource") return result;
  const { completion } = result;
  if (!isJsonObject(completion) || !Array.isArray(completion["values"])) return result;
  const given: unknown[] = completion["values"];
  const values = given.filter((value) => {
    const argument = { ...use.argument, value: String(value) };
    return gate.shows(session, target.capability, ruledNameOf({ ...use, argument }));
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
function checkRequest({ session, signal, use }: CallInProgress): void {
  if (session.closed) throw new ToolcribError("cancelled", "The session is closed.");
  if (signal.aborted) throw new ToolcribError("cancelled", "The call was cancelled before it began.");
  if (use.kind !== "tool" && use.kind !== "prompt") return;
  if (typeof use.name !== "string")
    throw new ToolcribError("invalid_arguments", `The name of a ${use.kind} must be text.`);
  if (!isJsonObject(use.arguments)) {
    throw new ToolcribError("invalid_arguments", `The arguments of ${use.name} must be an object.`);
  }
}
