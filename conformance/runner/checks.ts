/** What a suite found out: its `checks.json` files, one in a folder for each scenario. */
import { globSync, readFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";

export type Status = "SUCCESS" | "FAILURE" | "WARNING" | "INFO" | "SKIPPED";

export interface Check {
  readonly id: string;
  readonly name: string;
  readonly status: Status;
  readonly errorMessage?: string;
}

export type Results = ReadonlyMap<string, readonly Check[]>;

/** Folders are named `server-<scenario>-<time>` or `<scenario>-<time>`; a scenario's name may hold a slash. */
export function readResults(folder: string): Results {
  const results = new Map<string, readonly Check[]>();
  for (const file of globSync("**/checks.json", { cwd: folder }).toSorted()) {
    const path = relative(folder, dirname(join(folder, file))).replaceAll(sep, "/");
    const scenario = path.replace(/^server-/, "").replace(/-\d{4}-\d\d-\d\dT[\d-]+Z$/, "");
    // The suites write this file themselves.
    results.set(scenario, JSON.parse(readFileSync(join(folder, file), "utf8")) as Check[]);
  }
  return results;
}

export interface Tally {
  readonly passed: number;
  readonly failed: number;
}

/** As the suites count: a warning is no pass, and what is for information counts neither way. */
export function tally(checks: readonly Check[]): Tally {
  const passed = checks.filter(({ status }) => status === "SUCCESS").length;
  const failed = checks.filter(({ status }) => status === "FAILURE" || status === "WARNING").length;
  return { passed, failed };
}

/** The same check may be made several times: its outcomes in the order in which they came. */
export function byCheck(checks: readonly Check[]): Map<string, Check[]> {
  return Map.groupBy(checks, ({ id, name }) => (id === name ? id : `${id} (${name})`));
}
