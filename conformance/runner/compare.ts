/** Holds a run through the gateway against the direct one: every check has to come out alike. */
import { byCheck, type Check, type Results, type Status } from "./checks.ts";

/** A check that may come out as something else, and the words of the specification that allow it. */
export interface AcceptedDifference {
  readonly scenario: string;
  readonly check: string;
  /** How it comes out through the gateway. */
  readonly as: Difference["through"];
  readonly reason: string;
  /** Quoted from the specification. */
  readonly quote: string;
  /** Where it says so. */
  readonly from: string;
}

export interface Difference {
  readonly scenario: string;
  readonly check: string;
  /** `absent` if the check was made less often than through the gateway, or not at all. */
  readonly direct: Status | "absent";
  /** `absent` if the check was made less often than directly, or not at all. */
  readonly through: Status | "absent";
  readonly message: string;
  /** Why it is accepted, with the quotation; a regression if undefined. */
  readonly reason?: string;
}

/** Names every check that differs, for the better too, and whether or not the suite scores it. */
export function compare(direct: Results, through: Results, accepted: readonly AcceptedDifference[]): Difference[] {
  return [...new Set([...direct.keys(), ...through.keys()])].flatMap((scenario) => {
    const one = byCheck(direct.get(scenario) ?? []);
    const other = byCheck(through.get(scenario) ?? []);
    return [...new Set([...one.keys(), ...other.keys()])].flatMap((check) => {
      const outcomes = one.get(check) ?? [];
      const others = other.get(check) ?? [];
      const difference = differenceOf(outcomes, others);
      if (difference === undefined) return [];
      const match = accepted.find((each) => matches(each, scenario, [...outcomes, ...others], difference.through));
      const reason = match && `${match.reason} "${match.quote}" (${match.from})`;
      return [{ scenario, check, ...difference, ...(reason === undefined ? {} : { reason }) }];
    });
  });
}

/** The first outcome of each side that the other does not have; the worst of ours, if one passes directly. */
function differenceOf(
  direct: readonly Check[],
  through: readonly Check[],
): Pick<Difference, "direct" | "through" | "message"> | undefined {
  const left = [...through];
  const missed = direct.filter(({ status }) => {
    const at = left.findIndex((each) => each.status === status);
    if (at !== -1) left.splice(at, 1);
    return at === -1;
  });
  const [lost] = missed;
  const [instead] = left;
  if (lost === undefined && instead === undefined) return undefined;
  const counted = `made ${through.length} of ${direct.length} times`;
  return {
    direct: lost?.status ?? "absent",
    through: instead?.status ?? "absent",
    message: instead === undefined ? counted : (instead.errorMessage ?? ""),
  };
}

function matches(
  accepted: AcceptedDifference,
  scenario: string,
  outcomes: readonly Check[],
  through: Difference["through"],
): boolean {
  return accepted.scenario === scenario && outcomes.some(({ id }) => id === accepted.check) && accepted.as === through;
}
