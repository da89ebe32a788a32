/** The suite's scenarios about tasks through the gateway, in front of servers of both generations. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { startGateway } from "../../conformance/runner/gateway.ts";
import { runServerScenarios, SUITES } from "../../conformance/runner/suites.ts";

const FIXTURE = join(import.meta.dirname, "../../conformance/task-fixture.ts");
const SCENARIOS = [
  "tasks-lifecycle",
  "tasks-capability-negotiation",
  "tasks-wire-fields",
  "tasks-request-state-removal",
  "tasks-mrtr-input",
  "tasks-request-headers",
  "tasks-dispatch-and-envelope",
  "tasks-status-notifications",
  "tasks-required-task-error",
  "tasks-mrtr-composition",
];

describe("[whole-24j] the official scenarios about tasks through the gateway", { timeout: 300_000 }, () => {
  it.each(["modern", "legacy"])("pass in front of a server of the %s era", async (era) => {
    const suite = SUITES.find(({ version }) => version === "2026-07-28");
    if (suite === undefined) throw new Error("there is no such suite");
    const folder = mkdtempSync(join(tmpdir(), "toolcrib-task-suite-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    await using gateway = await startGateway({ command: process.execPath, args: [FIXTURE, era] });
    const failed: string[] = [];
    let passed = 0;
    for (const only of SCENARIOS) {
      const results = await runServerScenarios(suite, { url: gateway.url, folder: join(folder, only), only });
      for (const { id, status, errorMessage } of [...results.values()].flat()) {
        if (status === "SUCCESS") passed++;
        if (status === "FAILURE" || status === "WARNING") failed.push(`${only} ${id}: ${errorMessage ?? ""}`);
      }
    }
    expect(failed).toEqual([]);
    expect(passed).toBeGreaterThan(30);
  });
});
