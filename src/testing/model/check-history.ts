/** Whether each call of a history has its result and each result its call, as every provider demands. */
import type { ModelMessage } from "./model-request.ts";

export type HistoryProblem =
  /** Calls without a result. `index`: of the message that made them. */
  | { readonly kind: "unanswered"; readonly ids: readonly string[]; readonly index: number }
  /** A result whose call is not in the message before it. */
  | { readonly kind: "unexpected"; readonly id: string; readonly index: number }
  | { readonly kind: "doubled"; readonly id: string; readonly index: number };

/** `messages` with all results of one message merged. */
export function checkHistory(messages: readonly ModelMessage[]): HistoryProblem | undefined {
  for (const [index, message] of messages.entries()) {
    const before = messages[index - 1];
    const asked = new Set(before?.calls.map((call) => call.id));
    const seen = new Set<string>();
    for (const { id } of message.results) {
      if (!asked.has(id)) return { kind: "unexpected", id, index };
      if (seen.has(id)) return { kind: "doubled", id, index };
      seen.add(id);
    }
    const answered = new Set(messages[index + 1]?.results.map((result) => result.id));
    const ids = message.calls.map((call) => call.id).filter((id) => !answered.has(id));
    if (ids.length > 0) return { kind: "unanswered", ids, index };
  }
  return undefined;
}
