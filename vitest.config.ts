import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    setupFiles: ["test/support/isolate-home.ts"],
    reporters: ["default", "./test/support/closing-line.ts"],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // On two cores vitest would use one: much of the suite waits for processes, and the other core idles.
    maxWorkers: Math.max(2, availableParallelism() - 1),
  },
});
