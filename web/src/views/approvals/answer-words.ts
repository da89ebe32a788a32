/** Waiting calls in groups, and their parts in words. */
import type { Approval } from "../../../../src/contract/activity-schemas.ts";
import { approvals } from "../../messages/approvals.ts";
import { type Message, t } from "../../messages/messages.ts";
import { doorWord } from "../sessions/session-words.ts";

export type LastingWord = "always" | "always-values" | "always-call";
export type AnswerWord = "once" | "session" | LastingWord | "no";

export const ANSWERED_WORDS: Readonly<Record<AnswerWord | "timeout" | "withdrawn", Message>> = {
  once: approvals.once,
  session: approvals.session,
  always: approvals.always,
  "always-values": approvals.alwaysValues,
  "always-call": approvals.alwaysCall,
  no: approvals.no,
  timeout: approvals.timeout,
  withdrawn: approvals.withdrawn,
};

export const SCOPE_WORDS: Readonly<Record<LastingWord, Message>> = {
  "always-call": approvals.scopeCall,
  "always-values": approvals.scopeValues,
  always: approvals.scopeTool,
};

/** The narrowest first. */
export function scopesOf({ lasting = {} }: Pick<Approval, "lasting">): LastingWord[] {
  return (["always-call", "always-values", "always"] as const).filter((word) => lasting[word] !== undefined);
}

type Risk = NonNullable<Approval["risks"]>[number]["risk"];

export const RISK_WORDS: Readonly<Record<Risk, Message>> = {
  outside: approvals.outside,
  host: approvals.host,
  shell: approvals.shell,
  rule: approvals.ruleLooked,
};

/** One entry for calls that are alike: the one that has the least time left, and all of them. */
export interface CallGroup {
  readonly first: Approval;
  readonly all: readonly Approval[];
}

/** In the order of their time left. */
export function groupsOf(waiting: readonly Approval[]): CallGroup[] {
  const groups = new Map<string, Approval[]>();
  for (const approval of waiting.toSorted((a, b) => Date.parse(a.expiresAt) - Date.parse(b.expiresAt))) {
    const key = approval.group ?? approval.id;
    groups.set(key, [...(groups.get(key) ?? []), approval]);
  }
  return [...groups.values()].flatMap((all) => (all[0] === undefined ? [] : [{ first: all[0], all }]));
}

export function sessionText({ client, user, role, door }: Approval["session"]): string {
  const program =
    client && [client.title ?? client.name, client.version].filter((word) => word !== undefined).join(" ");
  const named = [user, program].filter((word) => word !== undefined);
  const who = [
    named.length === 0 ? t(approvals.aClient) : named.join(", "),
    ...(role === undefined ? [] : [t(approvals.asRole, { role })]),
  ];
  return t(approvals.through, { who: who.join(" "), door: doorWord(door) });
}

interface RuleParts {
  readonly entry: string;
  readonly where: string;
  readonly looked: readonly string[];
}

/** As far as the rule says so: the contract leaves its form open. */
export function ruleParts(rule: Approval["rule"]): RuleParts {
  const text = (key: string): string => (typeof rule[key] === "string" ? rule[key] : "");
  const list = text("list");
  const looked = rule["arguments"];
  // That of a pin is a fingerprint.
  const pattern = list === "pins" ? (text("pattern").split(" ")[0] ?? "") : text("pattern");
  return {
    entry: [list === "pins" ? "guard.pins" : list, pattern].filter((word) => word !== "").join(": "),
    where: text("where"),
    looked: Array.isArray(looked) ? looked.filter((name) => typeof name === "string") : [],
  };
}
