/** Finds the config file: flag, variable, the working directory upward, the home. */
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { ToolcribError } from "../model/errors.ts";

const NAMES = ["toolcrib.json", "toolcrib.jsonc"];

/** `$TOOLCRIB_HOME`, by default `~/.toolcrib`; absolute. */
export function toolcribHome(env: NodeJS.ProcessEnv): string {
  const given = env["TOOLCRIB_HOME"];
  const user = userHome(env);
  return given === undefined || given === "" ? join(user, ".toolcrib") : resolve(expandTilde(given, user));
}

/** The user's own folder, as the given environment says. */
export function userHome(env: NodeJS.ProcessEnv): string {
  return env["HOME"] || env["USERPROFILE"] || homedir();
}

export function expandTilde(path: string, user: string): string {
  return path === "~" || path.startsWith("~/") || path.startsWith("~\\") ? join(user, path.slice(1)) : path;
}

interface FindOptions {
  /** What `--config` said. */
  readonly config?: string | undefined;
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  /** Toolcrib's home, if not the one that `env` says. */
  readonly home?: string | undefined;
}

/**
 * The absolute path of the config file, or null if there is none anywhere.
 * A file that was named and is not there is an error: falling back to another one would surprise.
 */
export function findConfig({ config, env, cwd, home }: FindOptions): string | null {
  if (config !== undefined && config !== "") return named(config, "", env, cwd);
  const variable = env["TOOLCRIB_CONFIG"];
  if (variable !== undefined && variable !== "") return named(variable, ", which $TOOLCRIB_CONFIG names", env, cwd);
  for (let folder = resolve(cwd); ; folder = dirname(folder)) {
    const found = firstIn(folder);
    if (found !== undefined) return found;
    if (folder === dirname(folder)) break;
  }
  return firstIn(home ?? toolcribHome(env)) ?? null;
}

function firstIn(folder: string): string | undefined {
  return NAMES.map((name) => join(folder, name)).find((path) => existsSync(path));
}

function named(path: string, remark: string, env: NodeJS.ProcessEnv, cwd: string): string {
  const file = resolve(cwd, expandTilde(path, userHome(env)));
  if (existsSync(file)) return file;
  throw new ToolcribError("not_found", `There is no config file ${file}${remark}`, {
    hint: "Check the path, or leave it out to have toolcrib.json searched for.",
    details: { file },
  });
}
