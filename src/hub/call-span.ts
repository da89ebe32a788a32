/** Where a call meets OpenTelemetry: its spans begin, surround the run, and end. Undefined while nobody traces. */
import type { JsonObject } from "../model/json.ts";
import type { Outcome } from "../model/outcome.ts";
import type { Result } from "../model/protocol.ts";
import type { Source, Use, UseContext } from "../model/source.ts";
import type { CallSpan } from "../telemetry/tracing/call-span.ts";
import type { CallInProgress, CallPath } from "./call-path.ts";

export function beginSpan(
  { tracing }: CallPath,
  { id, session, use }: CallInProgress,
  meta: JsonObject | undefined,
): CallSpan | undefined {
  return tracing?.begin(() => ({ callId: id, session: session.id, door: session.door, use, meta }));
}

/** Runs the use; traced, the source gets a `_meta` that continues the trace. */
export function runIn(span: CallSpan | undefined, source: Source, use: Use, context: UseContext): Promise<Result> {
  if (span === undefined) return source.run(use, context);
  return span.run(source, use, context.meta, (meta) => source.run(use, { ...context, meta }));
}

export function endSpan(span: CallSpan | undefined, { target, decision }: CallInProgress, outcome: Outcome): void {
  span?.end({
    server: target?.capability.origin.source ?? null,
    decision: decision?.verdict ?? "none",
    outcome: outcome.ok ? "ok" : outcome.error.code,
  });
}
