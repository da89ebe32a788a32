// @ts-check
/** Makes dist/ from src/: a bundle and the types. Does nothing when the sources are the ones that dist/ was made from. */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { withLock } from "./lock.mjs";
import { runNode } from "./run.mjs";

const TSC = join("node_modules", "typescript", "bin", "tsc");
const ROLLDOWN = join("node_modules", "rolldown", "package.json");
const BUNDLE = join("scripts", "bootstrap", "bundle.mjs");

/** Packages that become part of the bundle: every start needs them. The others are loaded from node_modules, on demand. */
export const BUNDLED = ["commander", "json5", "jsonc-parser", "zod"];

/** @param {string} root */
export function sourceHash(root) {
  const hash = createHash("sha256");
  const sources = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .sort()
    .map((name) => join("src", name));
  const versions = ["typescript", "rolldown", ...BUNDLED].map((name) => join("node_modules", name, "package.json"));
  for (const file of [...sources, "tsconfig.json", "tsconfig.build.json", BUNDLE, ...versions])
    hash
      .update(file)
      .update("\0")
      .update(readFileSync(join(root, file)))
      .update("\0");
  return hash.digest("hex");
}

/** @param {string} root */
export function canBuild(root) {
  return [TSC, ROLLDOWN].every((file) => existsSync(join(root, file)));
}

/** @param {{ root: string, nodePath: string, say: (line: string) => void }} options @returns {Promise<number>} an exit code */
export async function build({ root, nodePath, say }) {
  if (isBuilt(root)) return 0;
  return withLock(root, async () => {
    if (isBuilt(root)) return 0;
    say("Building dist from src");
    const hash = sourceHash(root);
    const fresh = join(root, ".dev", `dist-${process.pid}`);
    rmSync(fresh, { recursive: true, force: true });
    const codes = await Promise.all([
      runNode(nodePath, [TSC, "-p", "tsconfig.build.json", "--outDir", fresh], { cwd: root }),
      runNode(nodePath, [BUNDLE, fresh], { cwd: root }),
    ]);
    const code = codes.find((each) => each !== 0) ?? 0;
    if (code !== 0) {
      rmSync(fresh, { recursive: true, force: true });
      return code;
    }
    swap(root, fresh);
    writeFileSync(join(root, ".dev", "build-stamp"), hash);
    return 0;
  });
}

/** @param {string} root */
function isBuilt(root) {
  try {
    const stamp = readFileSync(join(root, ".dev", "build-stamp"), "utf8");
    return existsSync(join(root, "dist", "index.js")) && stamp === sourceHash(root);
  } catch {
    return false;
  }
}

/** A folder cannot be replaced in one step; between these two renames dist is missing for a moment. @param {string} root @param {string} fresh */
function swap(root, fresh) {
  const dist = join(root, "dist");
  const old = join(root, ".dev", `dist-old-${process.pid}`);
  mkdirSync(fresh, { recursive: true });
  if (existsSync(dist)) renameSync(dist, old);
  renameSync(fresh, dist);
  rmSync(old, { recursive: true, force: true });
}
