/**
 * The one way to run a capability. Every door calls it; nothing else calls `Source.run`.
 * It never throws: whatever happens, the call ends in exactly one Outcome and one record.
 */
import { randomUUID } from "node:crypto";
import { asToolcribError, ToolcribError } from "../model/errors.ts";
import { isJsonObject } from "../model/json.ts";
import type { Outcome } from "../model/outcome.ts";
import type { Use } from "../model/source.ts";
import type { Session } from "../sessions/session.ts";
import { linkSignals } from "./abort.ts";
import { admit, takeSlot } from "./admit.ts";
import { argumentsOf, type CallInProgress, type CallOptions, type CallPath, publicNameOf } from "./call-path.ts";
import { recordOf } from "./call-records.ts";
import { describeCall, narrowUse } from "./hook-call.ts";
import { locate, locateAbsent } from "./locate.ts";
import { conclude, examine, failed } from "./result.ts";

export async function runCall(path: CallPath, session: Session, use: Use, options: CallOptions): Promise<Outcome> {
  const link = linkSignals([options.signal, session.closing]);
  const call: CallInProgress = {
    id: randomUUID(),
    session,
    use,
    startedAt: path.clock.now(),
    signal: link.signal,
    target: undefined,
    decision: undefined,
    resultBytes: 0,
    findings: [],
    notes: {},
  };

  let outcome: Outcome;
  try {
    checkRequest(call);
    const found = (call.target = locate(path, session, use) ?? (await locateAbsent(path, session, use)));
    call.decision = path.gate.decide(session, found.capability, publicNameOf(use));
    const target = (call.target = call.decision.verdict === "allow" ? found : await admit(path, call, found));
    const slot = takeSlot(path, session, target);
    try {
      const seen = describeCall(call, target);
      const { onProgress } = options;
      const raw = await target.source.run(await narrowUse(path, seen, target.use, call.notes), {
        callId: call.id,
        session,
        signal: link.signal,
        ...(onProgress === undefined ? {} : { onProgress: (progress) => onProgress(path.mask(progress)) }),
        ...(options.meta === undefined ? {} : { meta: options.meta }),
        ...(options.audience === undefined ? {} : { audience: options.audience }),
      });
      outcome = conclude(call, await examine(path, call, target, seen, path.maskResult(raw), options.audience));
    } finally {
      slot.release();
    }
  } catch (thrown) {
    outcome = failed(path, call, asToolcribError(thrown), options.audience);
  } finally {
    link.dispose();
  }

  const record = path.hooks.persist(recordOf(call, outcome, path.clock.now()));
  if (record !== undefined) path.audit.write(record, { arguments: argumentsOf(use) });
  return outcome;
}

/** Doors and programs hand over what they were given, so the request itself may be wrong. */
function checkRequest({ session, signal, use }: CallInProgress): void {
  if (session.closed) throw new ToolcribError("cancelled", "The session is closed.");
  if (signal.aborted) throw new ToolcribError("cancelled", "The call was cancelled before it began.");
  if (use.kind !== "tool" && use.kind !== "prompt") return;
  if (typeof use.name !== "string") throw new ToolcribError("invalid_arguments", `The name of a ${use.kind} must be text.`);
  if (!isJsonObject(use.arguments)) {
    throw new ToolcribError("invalid_arguments", `The arguments of ${use.name} must be an object.`);
  }
}
