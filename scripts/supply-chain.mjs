// @ts-check
/**
 * `prepack` writes what npm packs besides: npm-shrinkwrap.json and sbom.cdx.json. `postpack` takes them away again, because npm would
 * take the shrinkwrap for the lock file of the repository. `licences` and `audit` are checks.
 */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { npmProgram } from "./bootstrap/npm.mjs";
import { judgeAudit, licenceProblems, partsOf, sbomOf, shrinkwrapOf } from "./bootstrap/supply-chain.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const PACKED = ["npm-shrinkwrap.json", "sbom.cdx.json"];
const ACCEPTED = join(root, ".ci", "accepted-advisories.json");
const AUDIT_MS = 60_000;

/** @param {string} name */
function readJson(name) {
  return JSON.parse(readFileSync(join(root, name), "utf8"));
}

/** @type {Readonly<Record<string, () => number>>} */
const TASKS = {
  prepack() {
    const lock = readJson("package-lock.json");
    const contents = [shrinkwrapOf(lock), sbomOf(lock, readJson("package.json"))];
    for (const [index, name] of PACKED.entries()) {
      writeFileSync(join(root, name), `${JSON.stringify(contents[index], null, 2)}\n`);
    }
    return 0;
  },
  postpack() {
    for (const name of PACKED) rmSync(join(root, name), { force: true });
    return 0;
  },
  licences() {
    const lock = readJson("package-lock.json");
    const problems = licenceProblems(lock);
    for (const problem of problems) console.log(problem);
    if (problems.length === 0) console.log(`The licences of ${partsOf(lock).length} packages are on the list.`);
    return problems.length === 0 ? 0 : 1;
  },
  audit() {
    const args = [npmProgram(process.env), "audit", "--omit=dev", "--json"];
    const { stdout, error } = spawnSync(process.execPath, args, { cwd: root, encoding: "utf8", timeout: AUDIT_MS });
    const report = parse(stdout) ?? { message: error?.message };
    const accepted = existsSync(ACCEPTED) ? JSON.parse(readFileSync(ACCEPTED, "utf8")) : [];
    const { skipped, problems, notes } = judgeAudit(report, accepted, new Date().toISOString().slice(0, 10));
    if (skipped !== undefined) {
      console.log(`Skipped: the registry does not tell of known faults (${skipped}).`);
      return 0;
    }
    for (const line of [...problems, ...notes]) console.log(line);
    console.log(
      problems.length === 0 ? "No known fault of level high or above." : "See CONTRIBUTING.md for how to accept one.",
    );
    return problems.length === 0 ? 0 : 1;
  },
};

/** @param {string | null} text @returns {unknown} */
function parse(text) {
  try {
    return JSON.parse(text ?? "");
  } catch {
    return undefined;
  }
}

const task = TASKS[process.argv[2] ?? ""];
if (task === undefined) console.error(`Say what to do: ${Object.keys(TASKS).join(", ")}.`);
process.exitCode = task === undefined ? 2 : task();
