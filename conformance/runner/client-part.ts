/** Runs the client scenarios of a suite with the hub as the client. */
import { join } from "node:path";
import { tally, type Tally } from "./checks.ts";
import { expectedFailure } from "./expected-failures.ts";
import { clientScenarios, runClientScenario, type Suite } from "./suites.ts";

const CLIENT = join(import.meta.dirname, "..", "hub-client.ts");

export interface ClientOutcome extends Tally {
  readonly suite: Suite["id"];
  readonly scenario: string;
  /** `stale`: passes although the list of expected failures says that it cannot. */
  readonly verdict: "pass" | "fail" | "expected failure" | "stale";
  readonly reason?: string;
}

export interface ClientPart {
  readonly folder: string;
  readonly only?: string | undefined;
  readonly onOutcome: (outcome: ClientOutcome) => void;
}

/** Counts milliseconds, and takes any stream for the one it waits for: needs the machine for itself. */
const ALONE = ["sse-retry"];
const AT_ONCE = 3;

export async function runClientPart(suite: Suite, part: ClientPart): Promise<ClientOutcome[]> {
  const listed = await clientScenarios(suite, join(part.folder, suite.id));
  const wanted = listed.filter((scenario) => part.only === undefined || scenario === part.only);
  const outcomes: ClientOutcome[] = [];
  const runOne = async (scenario: string): Promise<void> => {
    const outcome = await runScenario(suite, scenario, part.folder);
    outcomes.push(outcome);
    part.onOutcome(outcome);
  };
  for (const scenario of wanted.filter((each) => ALONE.includes(each))) await runOne(scenario);
  const queue = wanted.filter((each) => !ALONE.includes(each));
  const worker = async (): Promise<void> => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) await runOne(next);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return outcomes;
}

async function runScenario(suite: Suite, scenario: string, folder: string): Promise<ClientOutcome> {
  const command = `${process.execPath} ${CLIENT}`;
  const own = join(folder, suite.id, "client", scenario);
  const results = await runClientScenario(suite, { command, scenario, folder: own });
  const counted = tally([...results.values()].flat());
  return { suite: suite.id, scenario, ...counted, ...verdictOf(counted, expectedFailure(suite, scenario)) };
}

/** Even where a failure is expected, something passes: otherwise the client has not got as far as the scenario. */
export function verdictOf(
  { passed, failed }: Tally,
  reason: string | undefined,
): Pick<ClientOutcome, "verdict" | "reason"> {
  if (passed === 0) return { verdict: "fail" };
  if (reason === undefined) return { verdict: failed === 0 ? "pass" : "fail" };
  return { verdict: failed === 0 ? "stale" : "expected failure", reason };
}
