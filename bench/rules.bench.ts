/** What a decision with rules on arguments costs, beside one without any. Links of files are not followed: that is up to the disk. */
import type { JsonObject } from "../src/model/json.ts";
import { ArgumentReader, type FilePlace } from "../src/policy/argument-values.ts";
import { type CapabilityPolicy, Policy } from "../src/policy/decide.ts";
import { type Report, rowOf, timeInTurns } from "./bench.ts";

const PLACE: FilePlace = { home: "/home/ann", bases: ["/home/ann/work"] };
const SUBJECT = { kind: "tool", publicName: "srv__do", originName: "do", server: "srv" } as const;
/** Of one measured time: a single decision is shorter than the clock's steps. */
const DECISIONS = 1000;

/** Each set has 100 rules, and a call that the last of them could apply to. */
const RULES: Readonly<Record<string, readonly [(index: number) => string, JsonObject]>> = {
  "on other tools": [(index) => `other${index}__do(branch=main)`, { branch: "feature" }],
  "on values of one argument": [
    (index) => `srv__do(branch=release-${index})`,
    { branch: "feature/rules-on-arguments" },
  ],
  "on numbers and lists": [(index) => `srv__do(n>${index + 10}, kind in (a${index}, b${index}))`, { n: 5, kind: "c" }],
  "with wildcards": [(index) => `srv__do(branch=release-${index}/*)`, { branch: "feature-x" }],
  "on files": [(index) => `srv__do(path=/srv/secret${index}/**)`, { path: "/home/ann/work/src/index.ts" }],
};

export interface RulesBenchOptions {
  readonly rounds: number;
}

export const RULES_SIZE = { full: { rounds: 300 }, quick: { rounds: 100 }, smoke: { rounds: 3 } } as const;

export async function measureRules({ rounds }: RulesBenchOptions): Promise<Report> {
  const none = prepared([]);
  const sets = Object.entries(RULES).map(([what, [rule, args]]) => {
    const policy = prepared(Array.from({ length: 100 }, (_, index) => rule(index)));
    return [what, () => decideOften(policy, args)] as const;
  });
  const cases = { none: () => decideOften(none, {}), ...Object.fromEntries(sets) };
  const times = await timeInTurns<string>(cases, { rounds, warmup: Math.ceil(rounds / 4) });
  const perDecision = (name: string): number[] => (times[name] ?? []).map((time) => time / DECISIONS);
  return {
    title: "A decision with 100 rules on arguments",
    baseline: "a decision without rules on arguments",
    rows: [
      rowOf("a decision without rules on arguments", perDecision("none"), perDecision("none")),
      ...sets.map(([what]) => rowOf(`100 rules ${what}`, perDecision(what), perDecision("none"))),
    ],
  };
}

function prepared(deny: readonly string[]): CapabilityPolicy {
  const hub = { deny: [...deny] };
  return new Policy({ hub, where: "bench", servers: new Map() }).prepare(SUBJECT, { owner: true });
}

function decideOften(policy: CapabilityPolicy, args: JsonObject): number {
  let allowed = 0;
  for (let count = 0; count < DECISIONS; count += 1) {
    // As the hub does it: facts are gathered only where a rule has conditions.
    const facts = policy.isConditional
      ? {
          arguments: args,
          schema: undefined,
          reader: new ArgumentReader(PLACE),
          tainted: false,
          client: undefined,
          name: "srv__do",
          now: 0,
          countCalls: () => 0,
        }
      : undefined;
    if (policy.decide(facts).verdict === "allow") allowed += 1;
  }
  if (allowed !== DECISIONS) throw new Error("A rule applies that should not.");
  return allowed;
}
