/** What stands between a located capability and its run: the decision, the answer of a person, the limits. */
import type { Rule } from "../model/decision.ts";
import { ToolcribError } from "../model/errors.ts";
import type { Session } from "../sessions/session.ts";
import { argumentsOf, type CallInProgress, type CallPath, publicNameOf } from "./call-path.ts";
import { notFound } from "./locate.ts";
import { isSearchTool } from "./search-definitions.ts";
import type { Target } from "./target.ts";

/** Resolves if the call may go on. An operator learns which rule denied; to anyone else what is denied does not exist. */
export async function admit(path: CallPath, call: CallInProgress, target: Target): Promise<void> {
  const { session, use } = call;
  const name = publicNameOf(use);
  const verdicts = path.gate.verdicts(session, target.capability);
  for (const { verdict, rule } of verdicts) {
    if (verdict !== "deny") continue;
    if (!session.owner && !path.gate.shows(session, target.capability)) {
      throw notFound(use, path.visibleNames(session, use.kind));
    }
    throw new ToolcribError("denied", `Policy denies ${name}: ${wordsOf(rule)}.`, {
      hint: `\`toolcrib policy explain ${name}\` says more. Change the rule if this should be allowed.`,
      details: { rule },
    });
  }
  const { origin } = target.capability;
  for (const { verdict, rule } of verdicts) {
    if (verdict !== "ask") continue;
    const reason = `${name} needs a yes first: ${wordsOf(rule)}.`;
    const question = { callId: call.id, kind: use.kind, name, origin, arguments: argumentsOf(use), rule, reason };
    await path.approvals.ask(session, question, call.signal);
  }
}

function wordsOf({ list, pattern, where }: Rule): string {
  return list === "allow" ? `it is not in the allow list (${pattern}) of ${where}` : `${list} "${pattern}" in ${where}`;
}

export function takeSlot(path: CallPath, session: Session, target: Target): { release(): void } {
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
