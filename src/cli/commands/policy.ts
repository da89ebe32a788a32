/** `toolcrib policy`: writes rules, explains a decision, checks expected ones, and replays the audit log against the current rules. */
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { z } from "zod";
import { asToolcribError, ToolcribError } from "../../model/errors.ts";
import { type JsonObject, parseJson, parseJsonObject } from "../../model/json.ts";
import type { Explanation, NearestRule, PolicyStep } from "../../policy/decide.ts";
import { Session } from "../../sessions/session.ts";
import { parseTime } from "../../telemetry/audit/read.ts";
import { changeConfig } from "../change-config.ts";
import { type Invocation, unknownAction } from "../command.ts";
import { findCapability, type RunningHub, withHub } from "../running-hub.ts";
import type { Column } from "../table.ts";
import { recordedCalls } from "./audit.ts";

export async function run(invocation: Invocation): Promise<number> {
  const [action = "", operand] = invocation.args;
  switch (action) {
    case "allow":
    case "ask":
    case "deny":
    case "reset":
      return decide(invocation, action === "reset" ? "none" : action);
    case "explain":
      return explain(invocation, required(operand, "a name: toolcrib policy explain <name>"));
    case "test":
      return test(invocation, required(operand, "a file: toolcrib policy test <file>"));
    case "replay":
      return replay(invocation);
    default:
      throw unknownAction("policy", action, "Use toolcrib policy allow, ask, deny, reset, explain, test or replay.");
  }
}

/** Writes the rule, for the role if one is given, and shows what changes. */
async function decide(invocation: Invocation, verdict: "allow" | "ask" | "deny" | "none"): Promise<number> {
  const [action = "", ...patterns] = invocation.args;
  required(patterns[0], `names of tools or patterns: toolcrib policy ${action} <pattern...>`);
  const role = invocation.flags.text("role");
  return withHub(invocation, async (running) => {
    // Only what is listed can be an exception to a wider rule, and lost by a client.
    running.connectAuto();
    await running.settled();
    await changeConfig(invocation, running.hub, [{ kind: "rule", verdict, patterns, role }]);
    return 0;
  });
}

function required(operand: string | undefined, what: string): string {
  if (operand !== undefined && operand !== "") return operand;
  throw new ToolcribError("invalid_arguments", `It needs ${what}.`);
}

/** The decision, the rule, what each level said, and the rule that was closest to another decision. */
async function explain(invocation: Invocation, name: string): Promise<number> {
  const args = argumentsOf(invocation);
  return withHub(invocation, async (running) => {
    const { session } = running;
    await connectFor(running, name);
    const { hub } = running;
    const explanation =
      args === undefined
        ? await running.until(() => hub.explain(name, session))
        : await hub.explain({ name, arguments: args, session });
    if (explanation === undefined) throw hub.internals.missing(session, name);
    const role = invocation.flags.text("role") ?? null;
    if (invocation.out.json) invocation.out.value({ tool: name, role, ...explanation });
    else show(invocation, name, role, explanation);
    return 0;
  });
}

function argumentsOf({ flags }: Invocation): JsonObject | undefined {
  const text = flags.text("args");
  if (text === undefined) return undefined;
  const args = parseJsonObject(text);
  if (args !== undefined) return args;
  throw new ToolcribError("invalid_arguments", "--args is not a JSON object.", {
    hint: `For example: --args '{"branch":"main"}'`,
  });
}

/** A denied capability is in no view, so the catalog itself is asked once the servers are connected. */
async function connectFor(running: RunningHub, name: string): Promise<void> {
  if (name.includes("://")) running.connectAuto();
  else await findCapability(running, name, (view) => [...view.tools, ...view.prompts]);
}

const COLUMNS: readonly Column<PolicyStep>[] = [
  { title: "LEVEL", cell: (step) => step.level },
  { title: "SAYS", cell: (step) => step.verdict },
  { title: "RULE", cell: ({ rule }) => (rule === null ? "-" : `${rule.list}: ${rule.pattern}`) },
  { title: "WHERE", cell: (step) => step.where, shrink: true },
];

function show({ out }: Invocation, name: string, role: string | null, explanation: Explanation): void {
  const { decision, steps, nearest } = explanation;
  const who = role === null ? "the owner" : `the role ${role}`;
  out.line(`${name} for ${who}: ${out.paint("bold", decision.verdict)}`);
  out.line(because(decision));
  if (nearest !== undefined) out.line(otherwise(nearest));
  out.line("");
  out.table(COLUMNS, steps);
}

function because({ rule }: Explanation["decision"]): string {
  if (rule === null) return "No rule applies to it, so it is allowed.";
  const looked = rule.arguments === undefined ? "" : ` It looks at ${rule.arguments.join(", ")}.`;
  return `Because of ${rule.list} "${rule.pattern}" at level ${rule.level}: ${rule.where}.${looked}`;
}

function otherwise({ verdict, rule, unmet }: NearestRule): string {
  const text = `The nearest rule to another decision (${verdict}): ${rule.list} "${rule.pattern}" at level ${rule.level}`;
  return unmet.length === 0 ? `${text}, which is overruled.` : `${text}, which would need ${unmet.join(" and ")}.`;
}

const CaseSchema = z.strictObject({
  tool: z.string().min(1),
  args: z.record(z.string(), z.unknown()).default({}),
  role: z.string().optional(),
  client: z.string().optional(),
  tainted: z.boolean().optional(),
  at: z.string().optional(),
  earlierCalls: z.int().min(0).optional(),
  expect: z.enum(["allow", "deny", "ask"]),
  rule: z.string().optional(),
});
const CasesSchema = z.union([z.array(CaseSchema).min(1), z.strictObject({ cases: z.array(CaseSchema).min(1) })]);
type PolicyCase = z.output<typeof CaseSchema>;

interface CaseResult {
  readonly tool: string;
  readonly expected: string;
  readonly got: string;
  readonly rule: string;
  readonly ok: boolean;
}

const RESULT_COLUMNS: readonly Column<CaseResult>[] = [
  { title: "", cell: ({ ok }) => (ok ? "ok" : "FAILED") },
  { title: "TOOL", cell: ({ tool }) => tool },
  { title: "EXPECTED", cell: ({ expected }) => expected },
  { title: "GOT", cell: ({ got }) => got },
  { title: "RULE", cell: ({ rule }) => rule, shrink: true },
];

/** Exit code 1 if a decision is not the expected one. */
async function test(invocation: Invocation, file: string): Promise<number> {
  const { out, cwd } = invocation;
  const cases = await readCases(resolve(cwd, file), file);
  return withHub(invocation, async (running) => {
    const results: CaseResult[] = [];
    for (const each of cases) results.push(await check(running, each));
    const failed = results.filter(({ ok }) => !ok).length;
    if (out.json) out.value({ passed: results.length - failed, failed, results });
    else {
      out.table(RESULT_COLUMNS, results);
      out.note(`${results.length - failed} of ${results.length} decisions are as expected.`);
    }
    return failed === 0 ? 0 : 1;
  });
}

async function readCases(path: string, file: string): Promise<readonly PolicyCase[]> {
  const text = await readFile(path, "utf8").catch((error: unknown) => {
    throw new ToolcribError("not_found", `The file ${file} cannot be read: ${asToolcribError(error).message}`);
  });
  const parsed = CasesSchema.safeParse(parseJson(text));
  if (parsed.success) return Array.isArray(parsed.data) ? parsed.data : parsed.data.cases;
  const issue = parsed.error.issues[0];
  throw new ToolcribError("invalid_arguments", `${file} is not a list of cases: ${z.prettifyError(parsed.error)}`, {
    hint: `A case is { "tool": "git__push", "args": { "branch": "main" }, "expect": "deny" }.`,
    details: { path: issue?.path.join(".") ?? "" },
  });
}

async function check(running: RunningHub, given: PolicyCase): Promise<CaseResult> {
  const { tool, args, role, expect, rule, at, ...circumstances } = given;
  const session = role === undefined ? running.session : new Session({ door: "library", role, owner: true });
  await connectFor(running, tool);
  const now = at === undefined ? undefined : parseTime("at", at, Date.now());
  const call = { name: tool, arguments: args, session, now, ...circumstances };
  const explanation = await running.hub.explain(call);
  if (explanation === undefined) throw running.hub.internals.missing(session, tool);
  const { verdict, rule: decided } = explanation.decision;
  const pattern = decided === null ? "-" : `${decided.list}: ${decided.pattern}`;
  const ok = verdict === expect && (rule === undefined || decided?.pattern === rule);
  return { tool, expected: rule === undefined ? expect : `${expect} by ${rule}`, got: verdict, rule: pattern, ok };
}

interface ReplayedCall {
  readonly time: string;
  readonly tool: string;
  readonly before: string;
  readonly now: string;
  readonly rule: string;
}

const REPLAY_COLUMNS: readonly Column<ReplayedCall>[] = [
  { title: "TIME", cell: ({ time }) => time },
  { title: "TOOL", cell: ({ tool }) => tool },
  { title: "BEFORE", cell: ({ before }) => before },
  { title: "NOW", cell: ({ now }) => now },
  { title: "RULE", cell: ({ rule }) => rule, shrink: true },
];

/** The calls of the audit log that the current rules decide otherwise. */
async function replay(invocation: Invocation): Promise<number> {
  const { out, flags } = invocation;
  const since = parseTime("since", flags.text("since") ?? "7d", Date.now());
  return withHub(invocation, async (running) => {
    running.connectAuto();
    await running.settled();
    const changed: ReplayedCall[] = [];
    const counts = { calls: 0, withoutArguments: 0, unknown: 0 };
    for await (const { record } of recordedCalls(invocation, { since: new Date(since).toISOString() })) {
      const { name, kind, decision: before, time, role, client } = record;
      if (name === undefined || (before !== "allow" && before !== "ask" && before !== "deny")) continue;
      counts.calls += 1;
      const args = record.arguments === undefined ? undefined : parseJsonObject(record.arguments);
      if (args === undefined && (kind === "tool" || kind === "prompt")) counts.withoutArguments += 1;
      // Decided by arguments that are not in the log: what the rules say now cannot be told.
      if (args === undefined && record.rule?.arguments !== undefined) continue;
      const session =
        role === undefined || role === null ? running.session : new Session({ door: "library", role, owner: true });
      const call = { name, session, client: client?.name, now: Date.parse(time) };
      const explanation =
        args === undefined
          ? running.hub.explain(name, session)
          : await running.hub.explain({ ...call, arguments: args, tainted: record.rule?.list === "taint" });
      if (explanation === undefined) counts.unknown += 1;
      else if (explanation.decision.verdict !== before) {
        const { verdict, rule } = explanation.decision;
        changed.push({
          time,
          tool: name,
          before,
          now: verdict,
          rule: rule === null ? "-" : `${rule.list}: ${rule.pattern}`,
        });
      }
    }
    if (out.json) out.value({ ...counts, changed });
    else showReplay(invocation, counts, changed);
    return 0;
  });
}

function showReplay(
  { out }: Invocation,
  { calls, withoutArguments, unknown }: { calls: number; withoutArguments: number; unknown: number },
  changed: readonly ReplayedCall[],
): void {
  if (changed.length > 0) out.table(REPLAY_COLUMNS, changed);
  out.line(`${changed.length} of ${calls} recorded calls would be decided otherwise.`);
  if (withoutArguments > 0) {
    out.note(
      `The arguments of ${withoutArguments} are not in the log, so rules on arguments were not applied to them. Set audit.arguments to record them.`,
    );
  }
  if (unknown > 0) out.note(`${unknown} name something that is not there now.`);
}
