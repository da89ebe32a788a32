// @ts-check
/** Makes dist/ from src/ and web/: a bundle, the types and the page. Does nothing when the sources are the ones that dist/ was made from. */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { buildWeb, canBuildWeb, isWebBuilt } from "./build-web.mjs";
import { hashFiles } from "./hash-files.mjs";
import { withLock } from "./lock.mjs";
import { runNode } from "./run.mjs";

const TSC = join("node_modules", "typescript", "bin", "tsc");
const ROLLDOWN = join("node_modules", "rolldown", "package.json");
const BUNDLE = join("scripts", "bootstrap", "bundle.mjs");

/** Packages that become part of the bundle: every start needs them, or they are many files. The others are loaded from node_modules, on demand. */
export const BUNDLED = ["commander", "diff", "json5", "jsonc-parser", "kysely", "yaml", "zod"];

/** @param {string} root */
export function sourceHash(root) {
  const sources = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .sort()
    .map((name) => join("src", name));
  const versions = ["typescript", "rolldown", ...BUNDLED].map((name) => join("node_modules", name, "package.json"));
  return hashFiles(root, [...sources, "tsconfig.json", "tsconfig.build.json", BUNDLE, ...versions]);
}

/** @param {string} root */
export function canBuild(root) {
  return [TSC, ROLLDOWN].every((file) => existsSync(join(root, file))) && canBuildWeb(root);
}

/** @param {{ root: string, nodePath: string, say: (line: string) => void }} options @returns {Promise<number>} an exit code */
export async function build({ root, nodePath, say }) {
  if (isBuilt(root) && isWebBuilt(root)) return 0;
  return withLock(root, async () => {
    if (isBuilt(root)) return isWebBuilt(root) ? 0 : buildWeb({ root, nodePath, say });
    say("Building dist from src");
    const hash = sourceHash(root);
    const fresh = join(root, ".dev", `dist-${process.pid}`);
    rmSync(fresh, { recursive: true, force: true });
    const codes = await Promise.all([
      runNode(nodePath, [TSC, "-p", "tsconfig.build.json", "--outDir", fresh], { cwd: root }),
      runNode(nodePath, [BUNDLE, fresh], { cwd: root }),
      buildWeb({ root, nodePath, say, out: fresh }),
    ]);
    const code = codes.find((each) => each !== 0) ?? 0;
    if (code !== 0) {
      rmSync(fresh, { recursive: true, force: true });
      return code;
    }
    // Removed, not written over: it is wrong until the new one is there, and a copied tree may share the file by a hard link.
    const stamp = join(root, ".dev", "build-stamp");
    rmSync(stamp, { force: true });
    swap(root, fresh);
    writeFileSync(stamp, hash);
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
