import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    setupFiles: ["test/support/isolate-home.ts"],
    reporters: ["default", "./test/support/closing-line.ts"],
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
});
