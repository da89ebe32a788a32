/** What stands between a located capability and its run: the decision, the answer of a person, the limits. */
import type { Rule } from "../../model/decision.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { LimitOutcome } from "../../policy/call-limits.ts";
import { argumentsOf, type CallInProgress, type CallPath, publicNameOf, ruledNameOf } from "./call-context.ts";
import type { Question } from "./approvals.ts";
import { frozenCopy } from "./hooks.ts";
import { locate, notFoundError } from "./locate.ts";
import { isSearchTool } from "../view/search-definitions.ts";
import type { Target } from "./call-target.ts";

/**
 * Resolves with what may be run. An operator learns which rule denied; to anyone else what is denied does not exist.
 * Questions take time, so after each everything is looked up and decided anew: what runs is what was shown.
 */
export async function authorize(path: CallPath, call: CallInProgress, found: Target): Promise<Target> {
  try {
    return await authorized(path, call, found);
  } catch (error) {
    // It may have had one of several yeses that it needs.
    path.approvals.giveBack(call.id);
    throw error;
  }
}

async function authorized(path: CallPath, call: CallInProgress, found: Target): Promise<Target> {
  call.use = frozenCopy(call.use);
  const { session, use } = call;
  const name = publicNameOf(use);
  const answered = new Set<string>();
  for (;;) {
    const target = locate(path, session, use);
    if (target === undefined || !isSameCapability(target, found)) throw changedError(name);
    const verdicts = path.gate.verdicts(session, target.capability, ruledNameOf(use));
    const denial = verdicts.find(({ verdict }) => verdict === "deny")?.rule;
    if (denial) throw deniedError(path, call, target, denial);
    const open = verdicts.flatMap(({ verdict, rule }) => (verdict === "ask" && !answered.has(rule.list) ? [rule] : []));
    const [rule] = open;
    if (rule === undefined) return target;
    answered.add(rule.list);
    await path.approvals.ask(session, approvalQuestion(path, call, target, rule), call.signal, call.onAsk);
  }
}

function approvalQuestion(
  path: CallPath,
  { id, session, use }: CallInProgress,
  { capability }: Target,
  rule: Rule,
): Question {
  const name = publicNameOf(use);
  const rules = rule.list === "ask" ? path.gate.askingRules(session, capability, ruledNameOf(use)) : [rule];
  const reason = `${name} needs approval: ${describeRule(rule)}.`;
  return {
    callId: id,
    kind: use.kind,
    name,
    origin: capability.origin,
    fingerprint: capability.fingerprint,
    // A yes to completing one value is none to completing another.
    arguments: use.kind === "completion" ? { [use.argument.name]: use.argument.value } : argumentsOf(use),
    rule,
    rules,
    reason,
  };
}

function deniedError(
  path: CallPath,
  { session, use }: CallInProgress,
  { capability }: Target,
  rule: Rule,
): ToolcribError {
  const name = publicNameOf(use);
  if (!session.owner && !path.gate.shows(session, capability, ruledNameOf(use))) {
    return path.absent.explain(session, use) ?? notFoundError(use, path.visibleNames(session, use.kind));
  }
  return new ToolcribError("denied", `Policy denies ${name}: ${describeRule(rule)}.`, {
    hint: `\`toolcrib policy explain ${name}\` says more. Change the rule if this should be allowed.`,
    details: { rule },
  });
}

/** What nobody lists has no fingerprint: whose it is counts as well. */
function isSameCapability({ capability: now }: Target, { capability: before }: Target): boolean {
  return now.fingerprint === before.fingerprint && now.origin.source === before.origin.source;
}

function changedError(name: string): ToolcribError {
  return new ToolcribError("denied", `${name} changed or went away while the call waited for an answer.`, {
    hint: "Look at what it is now, and call it again.",
  });
}

function describeRule({ list, pattern, where }: Rule): string {
  return list === "allow" ? `it is not in the allow list (${pattern}) of ${where}` : `${list} "${pattern}" in ${where}`;
}

const NO_SLOT = { release: (): void => {} };

export function acquireSlot(
  path: CallPath,
  call: CallInProgress,
  target: Target,
): { release(): void } | Promise<{ release(): void }> {
  // Searching reaches no server, and the call that `toolcrib_call` runs takes its own slot.
  if (isSearchTool(target.capability)) return NO_SLOT;
  const taken = path.limits.takeAcrossNodes(target.source.id, call.session.id, call.session.sharedKey);
  return taken instanceof Promise ? taken.then((answer) => slotOf(path, call, answer)) : slotOf(path, call, taken);
}

function slotOf(path: CallPath, { id }: CallInProgress, taken: LimitOutcome): { release(): void } {
  if (taken.ok) return taken;
  path.approvals.giveBack(id);
  const seconds = Math.ceil(taken.retryAfterMs / 1000);
  throw new ToolcribError("rate_limited", `Limit reached: ${taken.what}.`, {
    hint: seconds > 0 ? `Try again in ${seconds} s.` : "Try again when a call has ended.",
    details: { retryAfterMs: taken.retryAfterMs },
  });
}
