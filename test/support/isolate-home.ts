/**
 * No test touches the real home: each test file gets its own, with an environment free of Toolcrib's variables. What a
 * file changed in its process is restored after it, because the next file may run in the same one.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, vi } from "vitest";

/** Vitest's own second is too short for a busy machine, here as in `expect.poll`. The file runs once for each test file, in one process. */
const { waitFor } = vi;
if (waitFor.name !== "patientWaitFor") {
  const patientWaitFor: typeof waitFor = (callback, options = { timeout: 60_000 }) => waitFor(callback, options);
  vi.waitFor = patientWaitFor;
}

const before = { env: { ...process.env }, cwd: process.cwd() };
const home = mkdtempSync(join(tmpdir(), "toolcrib-test-home-"));
for (const name of Object.keys(process.env)) if (name.startsWith("TOOLCRIB_")) delete process.env[name];
process.env["HOME"] = home;
process.env["USERPROFILE"] = home;
process.env["TOOLCRIB_HOME"] = join(home, ".toolcrib");

afterAll(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
  vi.unstubAllEnvs();
  vi.resetConfig();
  for (const name of Object.keys(process.env)) if (!(name in before.env)) delete process.env[name];
  Object.assign(process.env, before.env);
  process.chdir(before.cwd);
  rmSync(home, { recursive: true, force: true });
});
