/** The command line as tests start it: the built one, which is what users get and starts in a quarter of the time. */
import { existsSync, readFileSync } from "node:fs";
import { join, sep } from "node:path";
import { sourceHash } from "../../scripts/bootstrap/build.mjs";

const root = join(import.meta.dirname, "..", "..");

/** Whether dist/ is made from the sources that are here. `npm test` sees to it; a single test file may run on newer sources. */
export function isBuilt(): boolean {
  const stamp = join(root, ".dev", "build-stamp");
  return existsSync(stamp) && readFileSync(stamp, "utf8") === sourceHash(root);
}

/** For a test that looks at single modules, which a bundle does not have. */
export const SOURCE_MAIN = join(root, "src", "cli", "main.ts");

const isCurrent = isBuilt();

/** Files of the command line in dist/cli. */
export const PROGRAMS = ["main.cjs", join("bridge", "main.cjs")] as const;

/** The script of compile-cache.ts that starts one of them. */
export function keptProgram(cache: string, program: string): string {
  return join(cache, "programs", program.replaceAll(sep, "-"));
}

function findProgram(program: (typeof PROGRAMS)[number]): string {
  if (!isCurrent) return join(root, "src", "cli", program.replace(/\.cjs$/, ".ts"));
  const kept = keptProgram(process.env["NODE_COMPILE_CACHE"] ?? "", program);
  return existsSync(kept) ? kept : join(root, "dist", "cli", program);
}

export const MAIN = findProgram(PROGRAMS[0]);

/** What `toolcrib mcp` is to a client. */
export const BRIDGE = findProgram(PROGRAMS[1]);

/** The folder of all code, to be copied. */
export const CODE = join(root, isCurrent ? "dist" : "src");

/** The same for programs of tests that use the library: `import toolcrib`. */
export const LIBRARY = isCurrent ? join(root, "dist", "index.js") : join(root, "src", "index.ts");

/** For the environment of a process that is started with little else: the compiled code of this run (compile-cache.ts). */
export const COMPILE_CACHE = { NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"] };

/**
 * Lists wait for servers that start under load, which take longer than clients usually wait. Part of the environment of a hub
 * whose test lists once.
 */
export const PATIENT = { TOOLCRIB_LIMITS_LIST_WAIT_MS: "10000" };
