/** Compares what a skill needs with what a machine has. */
import { accessSync, constants, readFileSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { posix, win32 } from "node:path";
import JSON5 from "json5";
import { openclaw } from "../clients/openclaw.ts";
import { isJsonObject } from "../model/json.ts";
import type { MissingNeeds, SkillNeeds } from "../model/skill.ts";

export interface Machine {
  readonly platform: NodeJS.Platform;
  readonly env: NodeJS.ProcessEnv;
  /** Whether OpenClaw's config has something at the path (`channels.slack`) that counts as yes. */
  hasConfig(path: string): boolean;
}

const PLATFORMS: Readonly<Record<string, string>> = {
  windows: "win32",
  win: "win32",
  win64: "win32",
  macos: "darwin",
  mac: "darwin",
  osx: "darwin",
};

/** The unmet part. Of `anyBins` and `os`, where one is enough, all are unmet if none fits. */
export function missingNeeds(needs: SkillNeeds, machine: Machine): MissingNeeds {
  const lacksBin = (name: string): boolean => findBin(name, machine) === undefined;
  return {
    bins: needs.bins.filter(lacksBin),
    anyBins: needs.anyBins.every(lacksBin) ? needs.anyBins : [],
    env: needs.env.filter((name) => (environmentVariable(machine.env, name, machine.platform) ?? "").trim() === ""),
    config: needs.config.filter((path) => !machine.hasConfig(path)),
    os: needs.os.some((name) => isPlatform(name, machine.platform)) ? [] : needs.os,
  };
}

export function isMet({ bins, anyBins, env, config, os }: MissingNeeds): boolean {
  return [bins, anyBins, env, config, os].every((list) => list.length === 0);
}

function isPlatform(name: string, platform: NodeJS.Platform): boolean {
  const known = name.trim().toLowerCase();
  return (Object.hasOwn(PLATFORMS, known) ? PLATFORMS[known] : known) === platform;
}

/** The machine that the process runs on, with OpenClaw's config as far as skills ask for it. */

/** What OpenClaw takes for granted where its config says nothing. */
const OPENCLAW_DEFAULTS = new Set(["browser.enabled", "browser.evaluateEnabled"]);

/** The config is read when it is first asked for, once. Only yes or no leaves it, never a value. */
export function thisMachine(env: NodeJS.ProcessEnv, platform: NodeJS.Platform = process.platform): Machine {
  let config: { readonly value: unknown } | undefined;
  return {
    platform,
    env,
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

/** undefined where OpenClaw has none, or one that cannot be read: then nothing is known to be there. */
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

/** Looks a program up on PATH the way this platform would, without a shell. */

/** What a lookup needs to know of the machine. */
interface ProgramLookup {
  readonly platform: NodeJS.Platform;
  readonly env: NodeJS.ProcessEnv;
}

/**
 * The path of the program, or undefined. A name with a folder in it is never found: whether it is there would depend
 * on the folder that the check happens to run in.
 */
export function findBin(
  name: string,
  { platform, env }: ProgramLookup,
  isProgram: (path: string) => boolean = isExecutableFile,
): string | undefined {
  const windows = platform === "win32";
  const paths = windows ? win32 : posix;
  if (name === "" || name === "." || name === ".." || /[/\\\0:]/.test(name)) return undefined;
  const names = windows ? withEndings(name, environmentVariable(env, "PATHEXT", platform)) : [name];
  for (const entry of (environmentVariable(env, "PATH", platform) ?? "").split(paths.delimiter)) {
    // Windows allows quotes around an entry.
    const folder = windows ? entry.replaceAll('"', "") : entry;
    // For the same reason as above; an empty entry means the current folder.
    if (!paths.isAbsolute(folder)) continue;
    for (const candidate of names) {
      const path = paths.join(folder, candidate);
      if (isProgram(path)) return path;
    }
  }
  return undefined;
}

function withEndings(name: string, given: string | undefined): string[] {
  const endings = (given || ".COM;.EXE;.BAT;.CMD").split(";").filter((ending) => ending !== "");
  const whole = endings.some((ending) => name.toLowerCase().endsWith(ending.toLowerCase()));
  return [...(whole ? [name] : []), ...endings.map((ending) => name + ending.toLowerCase())];
}

function isExecutableFile(path: string): boolean {
  try {
    if (!statSync(path).isFile()) return false;
    // On Windows this asks only whether it is there; the ending has said that it is a program.
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** A variable of an environment; Windows does not tell the case of names apart (`Path`). Empty counts as not there. */
function environmentVariable(env: NodeJS.ProcessEnv, name: string, platform: NodeJS.Platform): string | undefined {
  const exact = Object.hasOwn(env, name) ? env[name] : undefined;
  if (exact !== undefined && exact !== "") return exact;
  if (platform !== "win32") return undefined;
  const wanted = name.toUpperCase();
  return Object.entries(env).find(([key, value]) => key.toUpperCase() === wanted && value !== "")?.[1];
}
