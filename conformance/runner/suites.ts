/** The official suites, and how each is run. */
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { type Results, readResults } from "./checks.ts";
import { runToEnd } from "./processes.ts";

const RUN_MS = 180_000;

export interface Suite {
  readonly id: "0.1" | "0.2-2025-11-25" | "0.2-2026-07-28";
  readonly package: string;
  /** What is asked of a server. */
  readonly serverArgs: readonly string[];
  /** Which client scenarios there are, and at which version each is run. */
  readonly listArgs: readonly string[];
  readonly version?: string;
}

const NEXT = "mcp-conformance-next";

export const SUITES: readonly Suite[] = [
  {
    id: "0.1",
    package: "@modelcontextprotocol/conformance",
    serverArgs: ["--suite", "all"],
    listArgs: ["--client"],
  },
  ...(["2025-11-25", "2026-07-28"] as const).map((version) => ({
    id: `0.2-${version}` as const,
    package: NEXT,
    serverArgs: ["--requirements", version],
    listArgs: ["--requirements", version],
    version,
  })),
];

const require = createRequire(import.meta.url);

function folderOf(suite: Suite): string {
  return dirname(require.resolve(`${suite.package}/package.json`));
}

export function programOf(suite: Suite): string {
  return join(folderOf(suite), "dist", "index.js");
}

export function versionOf(suite: Suite): string {
  const { version } = JSON.parse(readFileSync(join(folderOf(suite), "package.json"), "utf8")) as { version: string };
  return version;
}

export interface ServerRun {
  readonly url: string;
  /** Where the suite's own files go; emptied first. */
  readonly folder: string;
  readonly only?: string | undefined;
}

/** Runs the server scenarios against an address. A failing scenario is a result, not an error; one that the suite does not have is none. */
export async function runServerScenarios(suite: Suite, { url, folder, only }: ServerRun): Promise<Results> {
  // Forced on a revision that does not have it, it would fail at the server itself.
  if (only !== undefined && suite.version !== undefined && !(await scenarios(suite, folder, "server")).includes(only)) {
    return new Map();
  }
  const what = only === undefined ? suite.serverArgs : oneScenario(suite, only);
  return run(suite, ["server", "--url", url, ...what], folder);
}

/** One client scenario alone: run side by side, as the suites would, they disturb each other's timing. */
export async function runClientScenario(
  suite: Suite,
  { command, scenario, folder }: { command: string; scenario: string; folder: string },
): Promise<Results> {
  return run(suite, ["client", "--command", command, ...oneScenario(suite, scenario), "--timeout", "60000"], folder);
}

function oneScenario({ version }: Suite, scenario: string): string[] {
  // Some scenarios of a revision are marked for another one only; the revision's list says that they are to be run.
  return ["--scenario", scenario, ...(version === undefined ? [] : ["--spec-version", version, "--force"])];
}

async function run(suite: Suite, args: readonly string[], folder: string): Promise<Results> {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  await runToEnd([programOf(suite), ...args, "-o", folder], join(folder, "log.txt"), RUN_MS);
  return readResults(folder);
}

export function clientScenarios(suite: Suite, folder: string): Promise<string[]> {
  return scenarios(suite, folder, "client");
}

const lists = new Map<string, Promise<string>>();

/** A suite is asked once for what it has: its program takes a second to start. */
async function scenarios(suite: Suite, folder: string, side: Side): Promise<string[]> {
  const list = lists.get(suite.id) ?? ask(suite, folder);
  lists.set(suite.id, list);
  return parseList(await list, side);
}

async function ask(suite: Suite, folder: string): Promise<string> {
  const log = join(folder, "list.txt");
  mkdirSync(dirname(log), { recursive: true });
  await runToEnd([programOf(suite), "list", ...suite.listArgs], log, RUN_MS);
  return readFileSync(log, "utf8");
}

type Side = "client" | "server";

/** The lines under the heading of a side's scenarios, and under that of the unscored ones those of that side. */
export function parseList(text: string, side: Side): string[] {
  const names: string[] = [];
  let heading = "";
  for (const line of text.split("\n")) {
    const item = /^\s+[-*]\s+(\S+)(.*)$/.exec(line);
    if (item === null) heading = line.trim() === "" ? heading : line;
    else if (heading.toLowerCase().startsWith(side) || (item[2] ?? "").includes(`[${side}]`)) names.push(item[1] ?? "");
  }
  return names;
}
