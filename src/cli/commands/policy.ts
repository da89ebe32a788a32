import type { Explanation, PolicyStep } from "../../policy/decide.ts";
import { type Invocation, unknownAction } from "../command.ts";
import { findCapability, withHub } from "../running-hub.ts";
import type { Column } from "../table.ts";

/** `policy explain <name>`: the decision, the rule, and what each level said. */
export async function run(invocation: Invocation): Promise<number> {
  const [action, name = ""] = invocation.args;
  if (action !== "explain") throw unknownAction("policy", action ?? "", "Use toolcrib policy explain <name>.");
  return withHub(invocation, async (running) => {
    const { hub } = running;
    // A denied capability is in no view, so the catalog itself is asked once the servers are connected.
    if (name.includes("://")) running.connectAuto();
    else await findCapability(running, name, (view) => [...view.tools, ...view.prompts]);
    const explanation = await running.until(() => hub.explain(name, running.session));
    if (explanation === undefined) throw hub.internals.missing(running.session, name);
    const role = invocation.flags.text("role") ?? null;
    if (invocation.out.json) invocation.out.value({ tool: name, role, ...explanation });
    else show(invocation, name, role, explanation);
    return 0;
  });
}

const COLUMNS: readonly Column<PolicyStep>[] = [
  { title: "LEVEL", cell: (step) => step.level },
  { title: "SAYS", cell: (step) => step.verdict },
  { title: "RULE", cell: ({ rule }) => (rule === null ? "-" : `${rule.list}: ${rule.pattern}`) },
  { title: "WHERE", cell: (step) => step.where, shrink: true },
];

function show({ out }: Invocation, name: string, role: string | null, { decision, steps }: Explanation): void {
  const who = role === null ? "the owner" : `the role ${role}`;
  out.line(`${name} for ${who}: ${out.paint("bold", decision.verdict)}`);
  out.line(because(decision));
  out.line("");
  out.table(COLUMNS, steps);
}

function because({ rule }: Explanation["decision"]): string {
  if (rule === null) return "No rule applies to it, so it is allowed.";
  return `Because of ${rule.list} "${rule.pattern}" at level ${rule.level}: ${rule.where}.`;
}
