/** The checks between a located capability and its run: the decision, the answer of a person, the limits. */
import { abortSignalOf } from "../../base/async.ts";
import { hasReferences } from "../../catalog/overrides.ts";
import type { Capability } from "../../model/capability.ts";
import type { AskRequest, Rule } from "../../model/decision.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { JsonObject } from "../../model/json.ts";
import type { LimitOutcome } from "../../policy/call-limits.ts";
import { exactPattern } from "../../policy/pattern.ts";
import { type CallFacts, callHash } from "../../policy/rule-conditions.ts";
import { argumentsOf, type CallContext, ruledNameOf } from "./call-context.ts";
import type { Question } from "./approvals.ts";
import { frozenCopy } from "./hooks.ts";
import { locate, notFoundError, type Target } from "./locate.ts";
import type { Use } from "../../model/source.ts";
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
    const known = factsOf(call, target);
    const facts = known instanceof Promise ? await known : known;
    const { capability } = target;
    const verdicts = path.access.verdicts(session, capability, ruledNameOf(call), argumentsOf(target.use), facts);
    const denial = verdicts.find(({ verdict }) => verdict === "deny")?.rule;
    if (denial) throw deniedError(call, target, denial);
    const isTask = isOfTask(use);
    const open = verdicts.flatMap(({ verdict, rule }) =>
      !isTask && verdict === "ask" && !answered.has(reasonOf(session, rule)) ? [rule] : [],
    );
    const [rule] = open;
    if (rule === undefined) {
      if (!isTask) path.access.count(session, capability);
      return target;
    }
    answered.add(reasonOf(session, rule));
    const askedAt = path.clock.now();
    try {
      await path.approvals.ask(
        session,
        approvalQuestion(call, target, rule, facts),
        abortSignalOf(call.signal),
        call.onAsk,
      );
    } finally {
      call.waitedMs += path.clock.now() - askedAt;
    }
  }
}

/** A request about a task: its arguments were decided on, approved and counted when it began. */
export function isOfTask(use: Use): boolean {
  return use.kind === "tool" && use.task !== undefined;
}

/** The facts that rules with conditions look at; undefined if there are none on it. */
export function factsOf(call: CallContext, { capability, use }: Target): CallFacts | Promise<CallFacts> | undefined {
  const { path, session, clientInfo } = call;
  if (isOfTask(use)) return undefined;
  return path.access.facts(session, capability, ruledNameOf(call), { use, client: clientInfo?.name });
}

/** Another server that was read from while the question was open is another reason to ask. */
function reasonOf(session: Session, { list }: Rule): string {
  return list === "taint" ? JSON.stringify(taintSources(session)) : list;
}

function taintSources({ taint }: Session): string[] {
  return taint?.origins.map(({ server }) => server) ?? [];
}

function approvalQuestion(call: CallContext, { capability }: Target, rule: Rule, facts?: CallFacts): Question {
  const { path, callId, session, name, use } = call;
  const rules = rule.list === "ask" ? path.access.askingRules(session, capability, ruledNameOf(call), facts) : [rule];
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
    lasting: lastingEntries(call, capability, rules),
    sources: rule.list === "taint" ? taintSources(session) : undefined,
  };
}

/** A longer value would make a rule that no one reads. */
const MAX_VALUE_LENGTH = 200;

/**
 * The entries that answers which last would add: for the tool, for the values that rules look at, and for the call. Values that
 * are secret or cannot be written as conditions are left to the hash of the call.
 */
function lastingEntries(call: CallContext, capability: Capability, rules: readonly Rule[]): AskRequest["lasting"] {
  const { use, path } = call;
  const always = exactPattern(use.kind, call.name);
  if (always === undefined) return undefined;
  if (use.kind !== "tool" || capability.kind !== "tool" || capability.name !== call.name) return { always };
  // A hash of little more than a secret could be guessed.
  const exact = hasReferences(capability) ? undefined : callHash(use.arguments);
  const looked = [...new Set(rules.flatMap((rule) => rule.arguments ?? []))];
  const conditions = looked.map((argument) => {
    const value = use.arguments[argument];
    const isShort = typeof value === "string" && value !== "" && value.length <= MAX_VALUE_LENGTH;
    if (isShort && path.mask(value) === value) return `${argument}=${JSON.stringify(value)}`;
    return (typeof value === "number" && Number.isFinite(value)) || typeof value === "boolean"
      ? `${argument}=${value}`
      : undefined;
  });
  const isWhole = conditions.length > 0 && conditions.every((condition) => condition !== undefined);
  return {
    always,
    ...(isWhole ? { "always-values": `${always}(${conditions.join(", ")})` } : {}),
    ...(exact === undefined ? {} : { "always-call": `${always}(*=${exact})` }),
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
  if (session.owner || rule.arguments === undefined) {
    return new ToolcribError("denied", `Policy denies ${name}: ${describeRule(rule)}.`, {
      hint: `\`toolcrib policy explain ${name}\` says more. Change the rule if this should be allowed.`,
      details: { rule },
    });
  }
  // Where it is written is for the operator.
  const { level, list, pattern, arguments: looked } = rule;
  return new ToolcribError(
    "denied",
    `Policy denies ${name} with these arguments: ${describeRule({ ...rule, where: "" })}.`,
    {
      hint: "Call it with other arguments, or ask whoever runs the hub.",
      details: { rule: { level, list, pattern, arguments: looked } },
    },
  );
}

/** An unlisted resource has no fingerprint, so its source counts as well. */
export function isSameCapability({ capability: now }: Target, { capability: before }: Target): boolean {
  return now.fingerprint === before.fingerprint && now.origin.source === before.origin.source;
}

export function changedError(name: string): ToolcribError {
  return new ToolcribError("denied", `${name} changed or went away while the call waited.`, {
    hint: "Look at what it is now, and call it again.",
  });
}

const RISKS: Readonly<Record<string, string>> = {
  destructive: "it can destroy or change data",
  sendsOut: "it can send data out",
};

function describeRule({ list, pattern, where, arguments: looked }: Rule): string {
  if (list === "taint") return `${RISKS[pattern] ?? pattern} (${where})`;
  const by = looked === undefined ? "" : `, which looks at ${looked.join(", ")}`;
  if (list === "allow") return `it is not in the allow list (${pattern})${where === "" ? "" : ` of ${where}`}${by}`;
  return `${list} "${pattern}"${where === "" ? "" : ` in ${where}`}${by}`;
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
