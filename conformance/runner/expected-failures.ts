/** Client scenarios that cannot pass, and why. One that passes all the same has to be taken out. */
import type { Suite } from "./suites.ts";

interface ExpectedFailure {
  readonly scenario: string;
  /** In this suite only. */
  readonly suite?: Suite["id"];
  readonly reason: string;
}

const EXPECTED: readonly ExpectedFailure[] = [
  {
    scenario: "auth/client-credentials-jwt",
    reason: "Toolcrib proves a client by its secret, not by a signed assertion (an extension).",
  },
  {
    scenario: "auth/enterprise-managed-authorization",
    reason: "Toolcrib does not exchange identity assertions of a company (an extension).",
  },
  {
    scenario: "auth/cross-app-access-complete-flow",
    reason: "Toolcrib does not exchange identity assertions of a company (an extension).",
  },
  { scenario: "auth/dpop", reason: "Toolcrib does not bind tokens to a key (an extension)." },
  { scenario: "auth/dpop-nonce", reason: "Toolcrib does not bind tokens to a key (an extension)." },
  {
    scenario: "auth/wif-jwt-bearer",
    reason: "Toolcrib does not log in with the identity of a workload (an extension).",
  },
  {
    scenario: "auth/2025-03-26-oauth-metadata-backcompat",
    suite: "0.1",
    reason: "The suite's metadata names another issuer than the one asked, which Toolcrib refuses; 0.2 has it right.",
  },
];

export function expectedFailure(suite: Suite, scenario: string): string | undefined {
  return EXPECTED.find((each) => each.scenario === scenario && (each.suite ?? suite.id) === suite.id)?.reason;
}
