import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { verdictOf } from "../../conformance/runner/client-part.ts";
import { readResults, tally } from "../../conformance/runner/checks.ts";
import { expectedFailure } from "../../conformance/runner/expected-failures.ts";
import { clientScenarios, parseList, runServerScenarios, SUITES, versionOf } from "../../conformance/runner/suites.ts";

const folder = mkdtempSync(join(tmpdir(), "toolcrib-conformance-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("what the suites say", () => {
  it("[gate-04b] reads the results of server and client scenarios by the names of the scenarios", () => {
    const time = "2026-11-16T00-14-56-532Z";
    const checks = [
      { id: "a", name: "A", status: "SUCCESS" },
      { id: "b", name: "B", status: "WARNING" },
      { id: "c", name: "C", status: "INFO" },
    ];
    for (const name of [`server-server-sse-polling-${time}`, `auth/metadata-var1-${time}`]) {
      mkdirSync(join(folder, "results", name), { recursive: true });
      writeFileSync(join(folder, "results", name, "checks.json"), JSON.stringify(checks));
    }
    const results = readResults(join(folder, "results"));
    expect([...results.keys()].toSorted()).toEqual(["auth/metadata-var1", "server-sse-polling"]);
    expect(tally(results.get("server-sse-polling") ?? [])).toEqual({ passed: 1, failed: 1 });
  });

  it("[gate-04b] finds the scenarios of a side in a list, the unscored ones included", () => {
    const list = [
      "Server scenarios (test against a server):",
      "  - ping",
      "",
      "Client scenarios (test against a client):",
      "  - initialize [2025-06-18,2025-11-25]",
      "  - auth/dpop [extension]",
      "",
      "Run and reported, but never scored:",
      "  extension (2):",
      "    - auth/wif-jwt-bearer [client]",
      "    - tasks-lifecycle [server]",
    ].join("\n");
    expect(parseList(list, "client")).toEqual(["initialize", "auth/dpop", "auth/wif-jwt-bearer"]);
    expect(parseList(list, "server")).toEqual(["ping", "tasks-lifecycle"]);
  });

  it("[whole-26a] does not force a scenario on a revision that does not have it", async () => {
    const suite = SUITES.find(({ id }) => id === "0.2-2025-11-25");
    if (suite === undefined) throw new Error("The suite has gone.");
    // No one listens there: a scenario that was run would have checks that failed.
    const run = { url: "http://127.0.0.1:9/mcp", folder: join(folder, "forced"), only: "caching" };
    expect(await runServerScenarios(suite, run)).toEqual(new Map());
  });

  it("[gate-04b] excuses an expected failure, but no client that did nothing, and no entry that is out of date", () => {
    expect(verdictOf({ passed: 3, failed: 0 }, undefined).verdict).toBe("pass");
    expect(verdictOf({ passed: 3, failed: 1 }, undefined).verdict).toBe("fail");
    expect(verdictOf({ passed: 3, failed: 1 }, "not built").verdict).toBe("expected failure");
    expect(verdictOf({ passed: 3, failed: 0 }, "not built").verdict).toBe("stale");
    expect(verdictOf({ passed: 0, failed: 1 }, "not built").verdict).toBe("fail");
    expect(verdictOf({ passed: 0, failed: 0 }, undefined).verdict).toBe("fail");
  });

  it("[gate-04b] has both suites installed, and expects failures of scenarios that there are", async () => {
    expect(SUITES.map(versionOf)).toEqual(["0.1.16", "0.2.0-alpha.12", "0.2.0-alpha.12"]);
    const expected = await Promise.all(
      SUITES.map(async (suite) => {
        const names = await clientScenarios(suite, join(folder, suite.id));
        return names.filter((name) => expectedFailure(suite, name) !== undefined);
      }),
    );
    expect(expected).toEqual([
      [
        "auth/2025-03-26-oauth-metadata-backcompat",
        "auth/client-credentials-jwt",
        "auth/cross-app-access-complete-flow",
      ],
      EXTENSIONS,
      EXTENSIONS,
    ]);
  });
});

const EXTENSIONS = [
  "auth/client-credentials-jwt",
  "auth/enterprise-managed-authorization",
  "auth/dpop",
  "auth/dpop-nonce",
  "auth/wif-jwt-bearer",
];
