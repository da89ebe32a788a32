/** What `doctor` checks before any server is started. */
import { accessSync, constants, existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { type Diagnostic, renderDiagnostic } from "../../config/diagnostics.ts";
import { toolcribHome } from "../../config/find-config.ts";
import type { LoadedConfig } from "../../config/load-config.ts";
import type { Hub } from "../../hub/hub.ts";
import { STORE_DIALECT } from "../../hub/servers/added-servers.ts";
import type { ToolcribError } from "../../model/errors.ts";

export interface Check {
  readonly area: "node" | "home" | "cages" | "config" | "cluster" | "store" | "skills" | "hub" | "server";
  readonly status: "ok" | "warn" | "fail";
  readonly message: string;
  /** What to do about it. */
  readonly hint?: string;
  readonly server?: string;
  readonly details?: Readonly<Record<string, unknown>>;
}

const NEEDED_NODE = [22, 14] as const;

export function nodeCheck(version: string): Check {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const [neededMajor, neededMinor] = NEEDED_NODE;
  if (major > neededMajor || (major === neededMajor && minor >= neededMinor)) {
    return { area: "node", status: "ok", message: `Node ${version}` };
  }
  return {
    area: "node",
    status: "fail",
    message: `Node ${version} is too old; ${NEEDED_NODE.join(".")} or newer is needed.`,
    hint: "Get one at https://nodejs.org",
  };
}

/** The home is made when it is first needed; until then the folder above must allow that. */
export function homeCheck(env: NodeJS.ProcessEnv): Check {
  const home = toolcribHome(env);
  let folder = home;
  while (!existsSync(folder) && dirname(folder) !== folder) folder = dirname(folder);
  try {
    accessSync(folder, constants.W_OK | constants.X_OK);
  } catch {
    return {
      area: "home",
      status: "fail",
      message: `${folder} is not writable.`,
      hint: "Change its permissions, or set TOOLCRIB_HOME to a folder of your own.",
    };
  }
  return { area: "home", status: "ok", message: home };
}

export function configCheck({ file, servers, warnings, project }: LoadedConfig, env: NodeJS.ProcessEnv): Check[] {
  const told = warnings.map((warning): Check => ({ area: "config", status: "warn", ...wordsOf(warning) }));
  const own = servers.filter(({ fromProject }) => fromProject !== true);
  const counted = countOf(own);
  if (project !== undefined) {
    const brought = countOf(servers.filter((spec) => !own.includes(spec)));
    told.unshift({ area: "config", status: "ok", message: `${project.file} (project, trusted): ${brought}` });
  }
  if (file !== null) return [{ area: "config", status: "ok", message: `${file}: ${counted}` }, ...told];
  const hint = `\`toolcrib add\` makes one at ${join(toolcribHome(env), "toolcrib.json")}`;
  return [{ area: "config", status: "warn", message: `There is no config file; ${counted}.`, hint }, ...told];
}

/** The servers that stand in no file; nothing where there is no store yet. */
export function storeCheck({ config, store }: Pick<Hub, "config" | "store">): Check[] {
  if (store === undefined) return [];
  const stored = config.servers.filter(({ origin }) => origin.dialect === STORE_DIALECT);
  return [{ area: "store", status: "ok", message: `${store.place}: ${countOf(stored)}` }];
}

function countOf(servers: LoadedConfig["servers"]): string {
  const enabled = servers.filter((spec) => spec.enabled).length;
  return `${servers.length} server${servers.length === 1 ? "" : "s"}, ${enabled} enabled`;
}

export function configErrorCheck(error: ToolcribError): Check[] {
  const problems = error.details?.["problems"];
  // Config errors carry their diagnostics; anything else has a message of its own.
  const diagnostics = Array.isArray(problems) && error.code === "invalid_config" ? (problems as Diagnostic[]) : [];
  if (diagnostics.length > 0) {
    return diagnostics.map((problem) => ({ area: "config", status: "fail", ...wordsOf(problem) }));
  }
  return [
    {
      area: "config",
      status: "fail",
      message: error.message,
      hint: error.hint,
    },
  ];
}

function wordsOf(diagnostic: Diagnostic): { message: string; hint?: string } {
  const { hint, ...rest } = diagnostic;
  return { message: renderDiagnostic(rest), hint };
}
