// @ts-check
/** Keeps node_modules in step with the lock file, and leaves it alone when it already is. */
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { withLock } from "./lock.mjs";
import { runNpm } from "./npm.mjs";

const STAMP = join("node_modules", ".toolcrib-stamp");

/** The parts of package.json that decide what is installed; a new script or keyword is no reason to reinstall. */
const DECIDING_KEYS = ["dependencies", "devDependencies", "optionalDependencies", "peerDependencies", "overrides"];

/** @param {string} root */
export function dependencyHash(root) {
  const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  return createHash("sha256")
    .update(readFileSync(join(root, "package-lock.json")))
    .update(JSON.stringify(DECIDING_KEYS.map((key) => manifest[key] ?? null)))
    .update(`${process.platform}-${process.arch}`)
    .digest("hex");
}

/** npm ci empties node_modules first, so a stamp in it never outlives the install that it speaks of. @param {string} root */
export function isStamped(root) {
  try {
    return readFileSync(join(root, STAMP), "utf8") === dependencyHash(root);
  } catch {
    return false;
  }
}

/** @param {string} root */
export function writeStamp(root) {
  mkdirSync(join(root, "node_modules"), { recursive: true });
  writeFileSync(join(root, STAMP), dependencyHash(root));
}

/** @param {{ root: string, nodePath: string, say: (line: string) => void }} options */
export async function installDependencies({ root, nodePath, say }) {
  if (isStamped(root)) return;
  await withLock(root, async () => {
    if (isStamped(root)) return;
    say("Installing the packages of package-lock.json (npm ci)");
    const start = performance.now();
    // Left by a pack that was killed: npm would take it for the lock file.
    rmSync(join(root, "npm-shrinkwrap.json"), { force: true });
    // --include=dev, because npm leaves those out under NODE_ENV=production.
    await runNpm(nodePath, ["ci", "--ignore-scripts", "--include=dev"], root);
    writeStamp(root);
    say(`Installed in ${((performance.now() - start) / 1000).toFixed(1)} s`);
  });
}
