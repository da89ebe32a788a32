/** Packages that are too large to be installed with the others: fetched from the registry once, into .dev/. */
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { endsWithin } from "../../src/base/async.ts";
import { runNpm } from "../../scripts/bootstrap/npm.mjs";

const DEV = resolve(import.meta.dirname, "../../.dev");
const INSTALL_MS = 120_000;

/** The folder `node_modules` that they are in, or why they are not there. Their install scripts do not run. */
export async function fetchPackages(
  packages: Readonly<Record<string, string>>,
): Promise<{ readonly modules: string } | { readonly missing: string }> {
  const specs = Object.entries(packages).map(([name, version]) => `${name}@${version}`);
  const folder = join(DEV, `fetched-${specs.join("+").replaceAll(/[^\w.@+-]/g, "_")}`);
  const modules = join(folder, "node_modules");
  if (existsSync(modules)) return { modules };
  mkdirSync(DEV, { recursive: true });
  const dir = mkdtempSync(join(DEV, "fetching-"));
  try {
    writeFileSync(join(dir, "package.json"), JSON.stringify({ private: true }));
    const args = [
      "install",
      "--ignore-scripts",
      "--legacy-peer-deps",
      "--no-package-lock",
      "--fetch-retries=1",
      "--fetch-timeout=60000",
      ...specs,
    ];
    const installed = await endsWithin(runNpm(process.execPath, args, dir), { ms: INSTALL_MS });
    if (!installed) return { missing: `npm did not fetch ${specs.join(" ")} in time` };
    // Another run may have been faster.
    if (!existsSync(folder)) renameSync(dir, folder);
    return { modules };
  } catch (error) {
    return { missing: `npm could not fetch ${specs.join(" ")}: ${String(error)}` };
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}
