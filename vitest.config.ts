import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";

/**
 * Folders whose files run one after the other in the same worker, so that each worker loads the sources once and not
 * for every file. Only for tests that leave nothing behind in their process; test/support/isolate-home.ts restores the
 * environment and the clock after each file. Not for those that measure patterns: V8 stops optimizing them in a process
 * that has compiled many.
 */
const SHARED = [
  "agent",
  "base",
  "catalog",
  "clients",
  "config",
  "contract",
  "files",
  "hub",
  "model",
  "policy",
  "schemas",
  "secrets",
  "sessions",
  "skills/!(scan)",
  "telemetry",
  "tools",
  "web",
].map((folder) => `test/${folder}/**/*.test.ts`);

export default defineConfig({
  test: {
    setupFiles: ["test/support/isolate-home.ts"],
    globalSetup: ["test/support/compile-cache.ts"],
    reporters: ["default", "./test/support/closing-line.ts"],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // Vitest's own second is too short for a busy machine, and its 50 ms between two looks add up.
    expect: { poll: { timeout: 10_000, interval: 10 } },
    // On two cores vitest would use one. Much of the suite waits, for processes, browsers and leases: even a worker for
    // each of two cores leaves a third of their time unused.
    maxWorkers: Math.max(3, availableParallelism()),
    projects: [
      { extends: true, test: { name: "shared", include: SHARED, isolate: false, sequence: { groupOrder: 0 } } },
      {
        extends: true,
        test: { name: "isolated", include: ["test/**/*.test.ts"], exclude: SHARED, sequence: { groupOrder: 1 } },
      },
    ],
  },
});
