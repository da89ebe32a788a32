/** Every process of a run, the workers among them, shares one cache of compiled code: the suite starts thousands of them. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Called for each project of vitest.config.ts; the first call makes the cache. */
export default function setup(): (() => void) | undefined {
  if (process.env["NODE_COMPILE_CACHE"] !== undefined) return undefined;
  const cache = mkdtempSync(join(tmpdir(), "toolcrib-test-cache-"));
  process.env["NODE_COMPILE_CACHE"] = cache;
  return () => rmSync(cache, { recursive: true, force: true });
}
