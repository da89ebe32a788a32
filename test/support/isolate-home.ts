/** No test touches the real home: each test file gets its own, with an environment free of Toolcrib's variables. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";

const home = mkdtempSync(join(tmpdir(), "toolcrib-test-home-"));
for (const name of Object.keys(process.env)) if (name.startsWith("TOOLCRIB_")) delete process.env[name];
process.env["HOME"] = home;
process.env["USERPROFILE"] = home;
process.env["TOOLCRIB_HOME"] = join(home, ".toolcrib");

afterAll(() => rmSync(home, { recursive: true, force: true }));
