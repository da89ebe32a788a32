/**
 * What a decision with rules on arguments costs, beside one without any, in CPU time, so that a busy machine gives the same
 * figures. Links of files are not followed: that is up to the disk.
 */
import type { JsonObject } from "../src/model/json.ts";
import { ArgumentReader, type FilePlace } from "../src/policy/argument-values.ts";
import { type CapabilityPolicy, Policy } from "../src/policy/decide.ts";
import { cpuInTurns, type Report, rowOf } from "./bench.ts";

const PLACE: FilePlace = { home: "/home/ann", bases: ["/home/ann/work"] };
const SUBJECT = { kind: "tool", publicName: "srv__do", originName: "do", server: "srv" } as const;
/** Of one measured time: a single decision is shorter than the clock's steps. */
const DECISIONS = 1000;

/** Each set has 100 rules, and a call that none of them applies to, so that nothing ends the search early. */
const RULES: Readonly<Record<string, readonly [(index: number) => string, JsonObject]>> = {
  "on other tools": [(index) => `other${index}__do(branch=main)`, { branch: "feature" }],
  "on values of one argument": [
    (index) => `srv__do(branch=release-${index})`,
    { branch: "feature/rules-on-arguments" },
  ],
  "on numbers": [(index) => `srv__do(n>${index + 10})`, { n: 5 }],
  "on numbers and lists": [(index) => `srv__do(n>${index + 10}, kind in (a${index}, b${index}))`, { n: 5, kind: "c" }],
  "with wildcards": [(index) => `srv__do(branch=release-${index}*)`, { branch: "feature-x" }],
  "with wildcards and slashes": [(index) => `srv__do(branch=release-${index}/*)`, { branch: "feature-x" }],
  "on addresses": [(index) => `srv__do(to=*@host${index}.example)`, { to: "Ann <ann@acme.example>" }],
  "on URIs": [(index) => `srv__do(url=https://host${index}.example/**)`, { url: "https://acme.example/a/b" }],
  "on files": [(index) => `srv__do(path=/srv/secret${index}/**)`, { path: "/home/ann/work/src/index.ts" }],
  "on names of files": [(index) => `srv__do(path=secret${index}.txt)`, { path: "src/index.ts" }],
  "on exact calls": [(index) => `srv__do(*=sha256:${String(index).padStart(64, "0")})`, { to: "ann", text: "Hello" }],
};

export interface RulesBenchOptions {
  readonly rounds: number;
}

export const RULES_SIZE = { full: { rounds: 200 }, quick: { rounds: 50 }, smoke: { rounds: 3 } } as const;

export async function measureRules({ rounds }: RulesBenchOptions): Promise<Report> {
  const none = prepared([]);
  const sets = Object.entries(RULES).map(([what, [rule, args]]) => {
    const policy = prepared(Array.from({ length: 100 }, (_, index) => rule(index)));
    return [what, () => decideOften(policy, args)] as const;
  });
  const cases = { none: () => decideOften(none, {}), ...Object.fromEntries(sets) };
  const times = await cpuInTurns(cases, { rounds, warmup: Math.ceil(rounds / 4), each: DECISIONS });
  const perDecision = (name: string): number[] => times[name] ?? [];
  return {
    title: "CPU of a decision with 100 rules on arguments",
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
