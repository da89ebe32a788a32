// @ts-check
/** Everything that is checked without running Toolcrib. Each step runs, whatever became of the one before it. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { runNode } from "./run.mjs";

const FOLDERS = ["src", "test", "bench", "conformance", "scripts", "demo", "examples", "bin", "web"];

/** The folders that linter and formatter are given by name: without any, they walk the whole disk they find. @param {string} root */
export function codeFolders(root) {
  return [...FOLDERS.filter((name) => existsSync(join(root, name))), "vitest.config.ts"];
}

/** @param {string} root @returns {readonly (readonly [name: string, ...command: string[]])[]} */
function checkSteps(root) {
  const bin = (/** @type {string} */ path) => join("node_modules", path);
  return [
    ["format", bin("oxfmt/bin/oxfmt"), "--check", ...codeFolders(root)],
    ["lint", bin("oxlint/bin/oxlint"), "--type-aware", "--deny-warnings", ...codeFolders(root)],
    ["types", bin("typescript/bin/tsc"), "-p", "tsconfig.json"],
    ["types of the page", bin("typescript/bin/tsc"), "-p", join("web", "tsconfig.json")],
    ["unused code (knip)", bin("knip/bin/knip.js"), "--no-progress"],
    ["licences", join("scripts", "supply-chain.mjs"), "licences"],
    ["package (publint)", bin("publint/src/cli.js"), "run", "--strict", "--pack", "npm"],
  ];
}

/** @param {{ root: string, nodePath: string }} options @returns {Promise<number>} an exit code */
export async function check({ root, nodePath }) {
  const failed = [];
  for (const [name, ...command] of checkSteps(root)) {
    console.log(`\n== ${name}`);
    const code = await runNode(nodePath, command, { cwd: root });
    if (code > 128) return code;
    if (code !== 0) failed.push(name);
  }
  console.log(failed.length === 0 ? "\ncheck: all passed" : `\ncheck: failed: ${failed.join(", ")}`);
  return failed.length === 0 ? 0 : 1;
}
