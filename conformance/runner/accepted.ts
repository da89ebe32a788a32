/** Where a gateway rightly differs from the server behind it, check by check. Everything else that differs is a fault. */
import type { AcceptedDifference } from "./compare.ts";
import type { Suite } from "./suites.ts";
import type { Upstream } from "./upstream.ts";

const ALWAYS: readonly AcceptedDifference[] = [
  {
    scenario: "server-sse-multiple-streams",
    check: "server-sse-streams-functional",
    as: "INFO",
    reason: "The fixture answers a list as an event stream, Toolcrib as JSON; both are allowed, and the suite says so.",
  },
  {
    scenario: "server-sse-polling",
    check: "server-sse-disconnect-resume",
    as: "INFO",
    reason: "The fixture ends its stream before it answers; Toolcrib keeps its own stream open and answers on it.",
  },
];

const NO_NAMES = "The modern era gives each question a name. A legacy server's have none, so Toolcrib makes them up.";
const NO_STATE = "An answer that comes before the question belongs to no call of a legacy server.";

const MODERN_CLIENT_LEGACY_SERVER: readonly AcceptedDifference[] = [
  {
    scenario: "input-required-result-basic-elicitation",
    check: "sep-2322-elicitation-incomplete",
    as: "FAILURE",
    reason: NO_NAMES,
  },
  {
    scenario: "input-required-result-basic-elicitation",
    check: "sep-2322-elicitation-complete",
    as: "absent",
    reason: NO_NAMES,
  },
  {
    scenario: "input-required-result-ignore-extra-params",
    check: "sep-2322-ignore-unexpected-params",
    as: "WARNING",
    reason: NO_STATE,
  },
];

export function acceptedDifferences(suite: Suite, upstream: Upstream): readonly AcceptedDifference[] {
  const legacy = upstream === "http-legacy" || upstream === "stdio";
  return suite.version === "2026-07-28" && legacy ? [...ALWAYS, ...MODERN_CLIENT_LEGACY_SERVER] : ALWAYS;
}
