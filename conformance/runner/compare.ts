/** Holds a run through the gateway against the direct one: what passes directly has to pass through. */
import { byCheck, type Check, type Results, type Status } from "./checks.ts";

/** A check that may come out as something else than a pass, and why that is right. */
export interface AcceptedDifference {
  readonly scenario: string;
  readonly check: string;
  readonly as: Difference["through"];
  readonly reason: string;
}

export interface Difference {
  readonly scenario: string;
  readonly check: string;
  /** What came instead of a pass; `absent` if the check was made less often, or not at all. */
  readonly through: Status | "absent";
  readonly message: string;
  /** Why it is accepted; a regression if undefined. */
  readonly reason?: string;
}

export function compare(direct: Results, through: Results, accepted: readonly AcceptedDifference[]): Difference[] {
  return [...direct].flatMap(([scenario, checks]) => {
    const other = byCheck(through.get(scenario) ?? []);
    return [...byCheck(checks)].flatMap(([check, outcomes]) => {
      if (!outcomes.every(({ status }) => status === "SUCCESS")) return [];
      const worse = worst(other.get(check) ?? [], outcomes.length);
      if (worse === undefined) return [];
      const reason = accepted.find((each) => matches(each, scenario, outcomes, worse.through))?.reason;
      return [{ scenario, check, ...worse, ...(reason === undefined ? {} : { reason }) }];
    });
  });
}

function worst(outcomes: readonly Check[], expected: number): Pick<Difference, "through" | "message"> | undefined {
  const failed = outcomes.find(({ status }) => status !== "SUCCESS");
  if (failed !== undefined) return { through: failed.status, message: failed.errorMessage ?? "" };
  if (outcomes.length < expected) return { through: "absent", message: `made ${outcomes.length} of ${expected} times` };
  return undefined;
}

function matches(
  accepted: AcceptedDifference,
  scenario: string,
  outcomes: readonly Check[],
  through: Difference["through"],
): boolean {
  return accepted.scenario === scenario && outcomes.some(({ id }) => id === accepted.check) && accepted.as === through;
}
