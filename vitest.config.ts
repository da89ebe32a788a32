import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";

/**
 * Folders whose files have a process each. All other files run one after the other in the same few processes, so that each
 * worker loads the sources once and not for every file: they leave nothing behind in their process, where
 * test/support/isolate-home.ts restores the environment and the clock after each file. Not so those that measure patterns: V8
 * stops optimizing them in a process that has compiled many.
 */
const ISOLATED = ["bench", "browser", "cluster", "conformance", "guard", "load", "real-clients", "skills/scan"].map(
  (folder) => `test/${folder}/**/*.test.ts`,
);
const ALL = "test/**/*.test.ts";

export default defineConfig({
  test: {
    setupFiles: ["test/support/isolate-home.ts"],
    globalSetup: ["test/support/compile-cache.ts", "test/support/bundled-servers.ts"],
    reporters: ["default", "./test/support/closing-line.ts"],
    // Many start several processes, which takes long on a machine that is busy with other tests.
    testTimeout: 120_000,
    hookTimeout: 60_000,
    // One flaky test blocks all that was submitted with it, so CI runs a failed test once more. The closing lines name each one
    // that passed only then: it has a fault all the same.
    retry: process.env["CI"] === undefined ? 0 : 1,
    // Vitest's own second is too short for a busy machine, and its 50 ms between two looks add up.
    expect: { poll: { timeout: 60_000, interval: 10 } },
    // On two cores vitest would use one. Much of the suite waits, for processes, browsers and leases: even a worker for
    // each of two cores leaves a third of their time unused.
    maxWorkers: Math.max(3, availableParallelism()),
    // By their names: those that take long come first, and small files fill what is left of the time at the end.
    projects: [
      { extends: true, test: { name: "isolated", include: ISOLATED } },
      { extends: true, test: { name: "shared", include: [ALL], exclude: ISOLATED, isolate: false } },
    ],
  },
});
