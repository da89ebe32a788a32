import { isDeepStrictEqual } from "node:util";
import type { Decision, Rule } from "../../../../model/decision.ts";
import type { Caller } from "../../../../model/caller.ts";
import type { Explanation } from "../../../../policy/decide.ts";
import { Session } from "../../../../sessions/session.ts";
import type { Handlers } from "../operation.ts";
import type { OperatorHub } from "../operator-hub.ts";
import { scopeMissing } from "../scope-missing.ts";

export const policyHandlers: Handlers<"explainPolicy"> = {
  explainPolicy({ name, role }, { caller, session }, { hub }) {
    const who = role === undefined || role === session.role ? session : asRole(role, caller);
    const visible = sees(hub, who, name);
    const knowsAll = caller.scopes.has("admin") || session.owner;
    const explanation = visible || knowsAll ? hub.explain(who, name) : undefined;
    if (explanation === undefined) throw hub.missing(who, name);
    const { verdict, rule } = explanation.decision;
    if (knowsAll) return { name, verdict, visible, rule: rule && { ...rule }, reasons: reasonsOf(explanation) };
    // Which rule it is, and where it stands, is for the user who runs the hub.
    return { name, verdict, visible, rule: null, reasons: [IN_SHORT[verdict]] };
  },
};

/** Only to be asked about: nothing is opened. */
function asRole(role: string, { scopes, owner }: Caller): Session {
  if (!scopes.has("admin")) throw scopeMissing("admin");
  return new Session({ door: "rest", role, owner });
}

function sees(hub: OperatorHub, session: Session, name: string): boolean {
  const { tools, prompts, resources, templates } = hub.view(session);
  return [tools, prompts, resources, templates].some((list) => list.some((capability) => capability.name === name));
}

const IN_SHORT: Readonly<Record<Decision["verdict"], string>> = {
  allow: "It may be used.",
  deny: "It may not be used.",
  ask: "Somebody has to say yes first.",
};

function reasonsOf({ decision, steps }: Explanation): string[] {
  const others = steps.flatMap(({ verdict, rule }) =>
    rule === null || isDeepStrictEqual(rule, decision.rule) ? [] : [`Also ${verdict}: ${ruleText(rule)}.`],
  );
  return [decidingReason(decision), ...others];
}

function decidingReason({ verdict, rule }: Decision): string {
  if (rule === null) return "No rule speaks of it, and what no rule speaks of is allowed.";
  return `${IN_SHORT[verdict].slice(0, -1)}: ${ruleText(rule)}.`;
}

function ruleText({ level, list, pattern, where }: Rule): string {
  return `${list} ${JSON.stringify(pattern)} of the ${level}, in ${where}`;
}
