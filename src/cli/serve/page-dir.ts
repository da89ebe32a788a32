import { existsSync } from "node:fs";
import { join } from "node:path";

/** Where the built page is: beside the bundle, or in dist for a hub that runs from its sources. */
export function pageDir(): string {
  const here = import.meta.dirname;
  const beside = join(here, "..", "web");
  return existsSync(join(beside, "index.html")) ? beside : join(here, "..", "..", "..", "dist", "web");
}
