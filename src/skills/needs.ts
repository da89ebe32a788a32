/** Compares what a skill needs with what a machine has. */
import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import JSON5 from "json5";
import { environmentValue, findProgram } from "../base/programs.ts";
import { openclaw } from "../clients/json-clients.ts";
import { isJsonObject } from "../model/json.ts";
import type { ServerSpec } from "../model/server-spec.ts";
import type { MissingNeeds, SkillFacts, SkillWarning } from "../model/skill.ts";
import { findMatchingServer } from "./servers/match-servers.ts";

export interface Machine {
  readonly platform: NodeJS.Platform;
  readonly env: NodeJS.ProcessEnv;
  /** Whether OpenClaw's config sets the path (`channels.slack`) to something other than off. */
  hasConfig(path: string): boolean;
  /** The MCP servers that are set up. */
  readonly servers: readonly ServerSpec[];
}

/** Other names that people use for Node's names of platforms. */
const PLATFORM_ALIASES: Readonly<Record<string, string>> = {
  windows: "win32",
  win: "win32",
  win64: "win32",
  macos: "darwin",
  mac: "darwin",
  osx: "darwin",
};

/** The unmet needs. Of `anyBins` and `os`, where one is enough, all are listed if none fits. */
export function missingNeeds(
  { needs, servers }: Pick<SkillFacts, "needs" | "servers">,
  machine: Machine,
): MissingNeeds {
  const lacksBin = (name: string): boolean => findProgram(name, machine) === undefined;
  return {
    bins: needs.bins.filter(lacksBin),
    anyBins: needs.anyBins.every(lacksBin) ? needs.anyBins : [],
    env: needs.env.filter((name) => (environmentValue(machine.env, name, machine.platform) ?? "").trim() === ""),
    config: needs.config.filter((path) => !machine.hasConfig(path)),
    os: needs.os.some((name) => platformName(name) === machine.platform) ? [] : needs.os,
    servers: missingServers(servers, machine.servers),
  };
}

export function missingServers(required: SkillFacts["servers"], present: readonly ServerSpec[]): string[] {
  return required.filter((each) => findMatchingServer(each, present) === undefined).map(({ name }) => name);
}

export function isMet(missing: MissingNeeds): boolean {
  return isRunnable(missing) && missing.servers.length === 0;
}

/** Whether the machine itself has everything, whatever servers are set up. */
export function isRunnable({ bins, anyBins, env, config, os }: MissingNeeds): boolean {
  return [bins, anyBins, env, config, os].every((list) => list.length === 0);
}

/** `needs_setup`: MCP servers are to be set up. `missing`: something else is to be installed or set. */
export function skillStatus(missing: MissingNeeds): "ready" | "needs_setup" | "missing" {
  if (missing.servers.length > 0) return "needs_setup";
  return isMet(missing) ? "ready" : "missing";
}

/** One warning for each missing thing. */
export function missingWarnings({ bins, anyBins, env, config, os, servers }: MissingNeeds): SkillWarning[] {
  const anyOf = anyBins.join(", ");
  return [
    ...bins.map((name) => ({ code: "MISSING_BIN", message: `The program ${name} is not installed.` })),
    ...(anyOf === "" ? [] : [{ code: "MISSING_BIN", message: `None of the programs ${anyOf} is installed.` }]),
    ...env.map((name) => ({ code: "MISSING_ENV", message: `The environment variable ${name} is not set.` })),
    ...config.map((path) => ({ code: "MISSING_CONFIG", message: `OpenClaw's setting ${path} is not on.` })),
    ...(os.length === 0 ? [] : [{ code: "MISSING_OS", message: `It runs on ${os.join(" or ")} only.` }]),
    ...servers.map((name) => ({ code: "MISSING_SERVER", message: `The MCP server ${name} is not set up.` })),
  ];
}

/** Node's name of a platform: `darwin` for `macOS`. */
export function platformName(name: string): string {
  const lower = name.trim().toLowerCase();
  return Object.hasOwn(PLATFORM_ALIASES, lower) ? (PLATFORM_ALIASES[lower] ?? lower) : lower;
}

/** Settings that OpenClaw treats as on unless its config says otherwise. */
const OPENCLAW_DEFAULTS = new Set(["browser.enabled", "browser.evaluateEnabled"]);

/** The machine of this process. OpenClaw's config is read once, when it is first needed; its values never leave this file. */
export function thisMachine(env: NodeJS.ProcessEnv, servers: readonly ServerSpec[] = []): Machine {
  const { platform } = process;
  let config: { readonly value: unknown } | undefined;
  return {
    platform,
    env,
    servers,
    hasConfig(path) {
      config ??= { value: readOpenclawConfig(env, platform) };
      return isConfigured(config.value, path);
    },
  };
}

function isConfigured(config: unknown, path: string): boolean {
  if (config === undefined) return false;
  let value: unknown = config;
  for (const step of path.split(".").filter((part) => part !== "")) {
    value = isJsonObject(value) && Object.hasOwn(value, step) ? value[step] : undefined;
  }
  if (value === undefined) return OPENCLAW_DEFAULTS.has(path);
  return typeof value === "string" ? value.trim() !== "" : Boolean(value);
}

/** Undefined if there is no config or it cannot be read. */
function readOpenclawConfig(env: NodeJS.ProcessEnv, platform: NodeJS.Platform): unknown {
  const home = env["HOME"] || env["USERPROFILE"] || homedir();
  try {
    const [file] = openclaw.files({ platform, home, env, projectDir: home });
    if (file === undefined) return undefined;
    return JSON5.parse<unknown>(readFileSync(file.path, "utf8").replace(/^\uFEFF/, ""));
  } catch {
    return undefined;
  }
}
