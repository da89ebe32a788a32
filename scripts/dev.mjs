// @ts-check
/**
 * Runs one task of this repository on any machine that has Node 18 or newer and npm:
 * a new enough Node first, then the packages of the lock file, then the task. Both are left alone when they are there.
 */
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build, canBuild } from "./bootstrap/build.mjs";
import { check, codeFolders } from "./bootstrap/check.mjs";
import { installDependencies, writeStamp } from "./bootstrap/dependencies.mjs";
import { findNode } from "./bootstrap/node.mjs";
import { runNode } from "./bootstrap/run.mjs";
import { installSystemPackages, needsSystemPackages } from "./bootstrap/system-packages.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const say = (/** @type {string} */ line) => void process.stderr.write(`[toolcrib] ${line}\n`);

/** Tests that make pictures: of every view, of dialogs, and those of the tutorial. */
const PICTURED = [
  ...["looks", "approvals", "logins", "resources", "shell"].map((name) => join("test", "browser", `${name}.test.ts`)),
  join("test", "docs", "tutorial.test.ts"),
];

/**
 * @typedef {import("./bootstrap/node.mjs").NodeBinary} NodeBinary
 * @type {Readonly<Record<string, (node: NodeBinary, args: readonly string[]) => Promise<number>>>}
 */
const TASKS = {
  start: (node, args) => built(node, () => run(node, [join("demo", "start.ts"), ...args])),
  demo: (node, args) => built(node, () => run(node, [join("demo", "run.ts"), ...args])),
  test: (node, args) => built(node, () => test(node, args)),
  "test:cluster": (node, args) => built(node, () => testCluster(node, args)),
  "test:clients": (node, args) => built(node, () => run(node, [join("test", "real-clients", "run.ts"), ...args])),
  screenshots: (node) => built(node, () => test(node, PICTURED, { DOCS_IMAGES: "write" })),
  check: (node) => built(node, () => check({ root, nodePath: node.path })),
  build: (node) => built(node, async () => 0),
  format: (node) => run(node, [join("node_modules", "oxfmt", "bin", "oxfmt"), ...codeFolders(root)]),
  bench: (node, args) => built(node, () => bench(node, args)),
  "bench:scale": (node, args) => built(node, () => benchScale(node, args)),
  soak: (node, args) => built(node, () => run(node, [join("scripts", "soak.ts"), ...args])),
  conformance: (node, args) => run(node, [join("scripts", "conformance.ts"), ...args]),
  generate: (node) => run(node, [join("scripts", "generate.ts")]),
};

/** @param {NodeBinary} node @param {readonly string[]} args @param {NodeJS.ProcessEnv} [env] */
function run(node, args, env) {
  return runNode(node.path, args, { cwd: root, env });
}

/** @param {NodeBinary} node @param {readonly string[]} args @param {NodeJS.ProcessEnv} [env] */
function test(node, args, env) {
  if (needsSystemPackages(args)) installSystemPackages({ say });
  return run(node, [join("node_modules", "vitest", "vitest.mjs"), "run", ...args], env);
}

/** The cluster with the long runs of random faults, which plain `test` leaves out. @param {NodeBinary} node @param {readonly string[]} args */
function testCluster(node, args) {
  installSystemPackages({ say });
  const vitest = join("node_modules", "vitest", "vitest.mjs");
  return runNode(node.path, [vitest, "run", join("test", "cluster"), ...args], {
    cwd: root,
    env: { CLUSTER_TESTS: "full" },
  });
}

/** @param {NodeBinary} node @param {readonly string[]} args */
function bench(node, args) {
  const [name = "gateway"] = args.filter((each) => !each.startsWith("-"));
  // The hop between nodes is measured with a real NATS and PostgreSQL.
  if (name === "gateway") installSystemPackages({ say });
  return run(node, [join("bench", "run.ts"), ...args]);
}

/** @param {NodeBinary} node @param {readonly string[]} args */
function benchScale(node, args) {
  installSystemPackages({ say });
  return run(node, [join("bench", "scale", "run.ts"), ...args]);
}

/** @param {NodeBinary} node @param {() => Promise<number>} next */
async function built(node, next) {
  const code = await build({ root, nodePath: node.path, say });
  return code === 0 ? next() : code;
}

/**
 * npm runs `prepare` inside its own install and before it packs. It must not start another install of this folder from
 * there, and after an install without the development packages there is nothing to build with.
 */
async function prepare() {
  if (!canBuild(root)) return 0;
  // Then all packages of the lock file are there, and the next task need not install them again.
  if (process.env["npm_command"] === "ci") writeStamp(root);
  const node = await findNode({ root, say });
  return build({ root, nodePath: node.path, say });
}

/** @param {string | undefined} name @param {readonly string[]} args */
async function runTask(name, args) {
  if (name === "prepare") return prepare();
  const task = name === undefined ? undefined : TASKS[name];
  if (task === undefined) {
    say(`There is no task "${name ?? ""}". Tasks: ${[...Object.keys(TASKS), "prepare"].join(", ")}.`);
    return 2;
  }
  const node = await findNode({ root, say });
  await installDependencies({ root, nodePath: node.path, say });
  return task(node, args);
}

try {
  const [name, ...args] = process.argv.slice(2);
  process.exitCode = await runTask(name, args);
} catch (error) {
  say(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
