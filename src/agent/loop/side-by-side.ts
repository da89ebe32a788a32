/** Runs the calls of one answer at the same time, as far as the hub lets them: what is more than its limit it refuses. */
import type { CallResult } from "../messages.ts";
import type { ToolCall } from "./tool-call.ts";

interface SideBySide {
  /** What a limit counts by: the server that a call goes to. */
  readonly lane: (call: ToolCall) => string | undefined;
  /** Calls that one lane may have under way. */
  readonly atOnce: number;
  readonly signal: AbortSignal;
}

/** Results in the order of the calls. */
export async function sideBySide(calls: readonly ToolCall[], options: SideBySide): Promise<readonly CallResult[]> {
  const { lane, atOnce, signal } = options;
  const results = new Map<ToolCall, CallResult>();
  const runNext = async (waiting: Iterable<ToolCall>): Promise<void> => {
    for (const call of waiting) results.set(call, await call.run(signal));
  };
  const running = [...Map.groupBy(calls, lane).values()].flatMap((group) => {
    // All take from one iterator. An abort ends those under way, and so empties it.
    const waiting = group.values();
    return group.slice(0, Math.max(1, atOnce)).map(() => runNext(waiting));
  });
  await Promise.all(running);
  return calls.flatMap((call) => results.get(call) ?? []);
}
