/** The checks between a located capability and its run: the decision, the answer of a person, the limits. */
import { hasReferences } from "../../catalog/overrides.ts";
import type { Capability } from "../../model/capability.ts";
import type { Rule } from "../../model/decision.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { JsonObject } from "../../model/json.ts";
import type { LimitOutcome } from "../../policy/call-limits.ts";
import { argumentsOf, type CallContext, ruledNameOf } from "./call-context.ts";
import type { Question } from "./approvals.ts";
import { frozenCopy } from "./hooks.ts";
import { locate, notFoundError, type Target } from "./locate.ts";
import type { Session } from "../../sessions/session.ts";
import { isSearchTool } from "../view/search-definitions.ts";

/**
 * Resolves with what may be run. An operator learns which rule denied; to anyone else what is denied does not exist.
 * Questions take time, so after each everything is looked up and decided again: what runs is what was shown.
 */
export async function authorize(call: CallContext, found: Target): Promise<Target> {
  try {
    return await authorized(call, found);
  } catch (error) {
    // It may have got one of several approvals that it needs.
    call.path.approvals.restore(call.callId);
    throw error;
  }
}

async function authorized(call: CallContext, found: Target): Promise<Target> {
  call.use = frozenCopy(call.use);
  const { path, session, name, use } = call;
  const answered = new Set<string>();
  for (;;) {
    const target = locate(path, session, use);
    if (target === undefined || !isSameCapability(target, found)) throw changedError(name);
    const verdicts = path.access.verdicts(session, target.capability, ruledNameOf(call), argumentsOf(use));
    const denial = verdicts.find(({ verdict }) => verdict === "deny")?.rule;
    if (denial) throw deniedError(call, target, denial);
    // The task was approved when it began.
    const isTask = use.kind === "tool" && use.task !== undefined;
    const open = verdicts.flatMap(({ verdict, rule }) =>
      !isTask && verdict === "ask" && !answered.has(reasonOf(session, rule)) ? [rule] : [],
    );
    const [rule] = open;
    if (rule === undefined) return target;
    answered.add(reasonOf(session, rule));
    await path.approvals.ask(session, approvalQuestion(call, target, rule), call.signal, call.onAsk);
  }
}

/** Another server that was read from while the question was open is another reason to ask. */
function reasonOf(session: Session, { list }: Rule): string {
  return list === "taint" ? JSON.stringify(taintSources(session)) : list;
}

function taintSources({ taint }: Session): string[] {
  return taint?.origins.map(({ server }) => server) ?? [];
}

function approvalQuestion(call: CallContext, { capability }: Target, rule: Rule): Question {
  const { path, callId, session, name, use } = call;
  const rules = rule.list === "ask" ? path.access.askingRules(session, capability, ruledNameOf(call)) : [rule];
  const reason = `${name} needs approval: ${describeRule(rule)}.`;
  return {
    callId,
    kind: use.kind,
    name,
    origin: capability.origin,
    fingerprint: capability.fingerprint,
    // Approval to complete one value is none to complete another.
    arguments:
      use.kind === "completion" ? { [use.argument.name]: use.argument.value } : shownArguments(call, capability),
    rule,
    rules,
    reason,
    sources: rule.list === "taint" ? taintSources(session) : undefined,
  };
}

/** Values that the config fixes by reference are for the server only. */
function shownArguments({ path, use }: CallContext, capability: Capability): Readonly<JsonObject> {
  const args = argumentsOf(use);
  return capability.kind === "tool" && hasReferences(capability) ? path.mask(args) : args;
}

function deniedError(call: CallContext, { capability }: Target, rule: Rule): ToolcribError {
  const { path, session, name, use } = call;
  if (!session.owner && !path.access.shows(session, capability, ruledNameOf(call))) {
    return path.unavailable.explain(session, use) ?? notFoundError(use, path.visibleNames(session, use.kind));
  }
  return new ToolcribError("denied", `Policy denies ${name}: ${describeRule(rule)}.`, {
    hint: `\`toolcrib policy explain ${name}\` says more. Change the rule if this should be allowed.`,
    details: { rule },
  });
}

/** An unlisted resource has no fingerprint, so its source counts as well. */
export function isSameCapability({ capability: now }: Target, { capability: before }: Target): boolean {
  return now.fingerprint === before.fingerprint && now.origin.source === before.origin.source;
}

function changedError(name: string): ToolcribError {
  return new ToolcribError("denied", `${name} changed or went away while the call waited for an answer.`, {
    hint: "Look at what it is now, and call it again.",
  });
}

const RISKS: Readonly<Record<string, string>> = {
  destructive: "it can destroy or change data",
  sendsOut: "it can send data out",
};

function describeRule({ list, pattern, where }: Rule): string {
  if (list === "taint") return `${RISKS[pattern] ?? pattern} (${where})`;
  return list === "allow" ? `it is not in the allow list (${pattern}) of ${where}` : `${list} "${pattern}" in ${where}`;
}

interface Slot {
  release(): void;
}

const NO_SLOT: Slot = { release() {} };

export function acquireSlot(call: CallContext, target: Target): Slot | Promise<Slot> {
  // Searching reaches no server, and the call that `toolcrib_call` runs takes its own slot.
  if (target.source.kind === "local" && isSearchTool(target.capability)) return NO_SLOT;
  const { id, sharedKey, owner } = call.session;
  const taken = call.path.limits.takeAcrossNodes(target.source.id, id, sharedKey, { owner });
  return taken instanceof Promise ? taken.then((answer) => slotOf(call, answer)) : slotOf(call, taken);
}

function slotOf({ path, callId }: CallContext, taken: LimitOutcome): Slot {
  if (taken.ok) return taken;
  path.approvals.restore(callId);
  const seconds = Math.ceil(taken.retryAfterMs / 1000);
  throw new ToolcribError("rate_limited", `Limit reached: ${taken.what}.`, {
    hint: seconds > 0 ? `Try again in ${seconds} s.` : "Try again when a call has ended.",
    details: { retryAfterMs: taken.retryAfterMs, limit: taken.limit },
  });
}
