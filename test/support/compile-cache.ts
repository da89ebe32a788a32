/**
 * Every process of a run, the workers among them, shares one cache of compiled code: the suite starts thousands of them. The
 * command line is started by a script that keeps its code there as well, as `bin/toolcrib.js` does for a user, because most
 * tests give it an environment without the cache.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { keptProgram, PROGRAMS } from "./main-program.ts";

/** Called for each project of vitest.config.ts; the first call makes the cache. */
export default function setup(): (() => void) | undefined {
  if (process.env["NODE_COMPILE_CACHE"] !== undefined) return undefined;
  const cache = mkdtempSync(join(tmpdir(), "toolcrib-test-cache-"));
  process.env["NODE_COMPILE_CACHE"] = cache;
  mkdirSync(join(cache, "programs"));
  for (const program of PROGRAMS) writeFileSync(keptProgram(cache, program), startScript(cache, program));
  return () => rmSync(cache, { recursive: true, force: true });
}

function startScript(cache: string, program: string): string {
  const root = join(import.meta.dirname, "..", "..");
  const [code, chunks, entry] = ["bin/compiled-code.js", "dist/chunks", join("dist", "cli", program)].map((path) =>
    JSON.stringify(join(root, path)),
  );
  return `const kind = process.argv[2] === "serve" ? "serve" : "commands";
const cache = ${JSON.stringify(cache)};
require("node:module").enableCompileCache(cache);
require(${code}).compileOnce(${chunks}, require("node:path").join(cache, kind), { loadsTheSame: kind === "serve" });
require(${entry});
`;
}
