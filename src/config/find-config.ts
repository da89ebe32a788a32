/** Finds the config files: flag or variable; otherwise the home's, and a project's from the working directory upward. */
import { existsSync, readFileSync, realpathSync } from "node:fs";
import { homedir, userInfo } from "node:os";
import { basename, dirname, isAbsolute, join, resolve, sep } from "node:path";
import type { ClientEnvironment } from "../clients/agent-client.ts";
import { settingsFilesIn } from "../clients/client-paths.ts";
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
  // A relative one would be a folder of wherever the command is run.
  const named = [env["HOME"], env["USERPROFILE"], homedir()].find((path) => path !== undefined && isAbsolute(path));
  return named ?? userInfo().homedir;
}

/** The machine that this runs on, as agent clients see it. */
export function localClientEnvironment(env: NodeJS.ProcessEnv, projectDir: string): ClientEnvironment {
  return { platform: process.platform, home: userHome(env), env, projectDir };
}

export function expandTilde(path: string, user: string): string {
  return path === "~" || path.startsWith("~/") || path.startsWith("~\\") ? join(user, path.slice(1)) : path;
}

interface FindOptions {
  /** The value of `--config`. */
  readonly config?: string | undefined;
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  /** Toolcrib's home, if not the one that `env` says. */
  readonly home?: string | undefined;
}

/**
 * Absolute paths. A file that was named counts alone; otherwise the project's is added to the home's, if it is trusted. The
 * project's is a folder where it has files of clients and no config of Toolcrib.
 */
type FoundConfig = { readonly named: string } | { readonly home: string | null; readonly project: string | null };

/** A file that was named and is not there is an error: falling back to another one would surprise. */
export function findConfig({ config, env, cwd, home = toolcribHome(env) }: FindOptions): FoundConfig {
  if (config !== undefined && config !== "") return named(config, "", { env, cwd, home });
  const variable = env["TOOLCRIB_CONFIG"];
  if (variable !== undefined && variable !== "") {
    return named(variable, ", which $TOOLCRIB_CONFIG names", { env, cwd, home });
  }
  return { home: configIn(home) ?? null, project: projectConfig(cwd, home) ?? trustedClientProject(cwd, home, env) };
}

/** Names what a hub serves: two commands with the same files can share one. */
export function configFiles(options: FindOptions & { readonly home: string }): string[] {
  const found = findConfig(options);
  if ("named" in found) return [found.named];
  const home = homeConfigFile(options.home);
  return found.project === null ? [home] : [home, found.project];
}

/** The config that `toolcrib add` makes where there is none. */
export function homeConfigFile(home: string): string {
  return configIn(home) ?? join(home, "toolcrib.json");
}

/** Whether a path has the name of a config that is found in a folder. */
export function isConfigName(path: string): boolean {
  return NAMES.includes(basename(path));
}

/**
 * The nearest one from the working directory upward, by the real path of its folder: trust in a folder must not carry over to
 * a link that leads there. Nothing in Toolcrib's home belongs to a project.
 */
export function projectConfig(cwd: string, home: string): string | null {
  const start = realOf(resolve(cwd));
  const own = realOf(home);
  for (let folder = start; ; folder = dirname(folder)) {
    const found = isWithin(folder, own) ? undefined : configIn(folder);
    if (found !== undefined) return found;
    if (folder === dirname(folder)) return null;
  }
}

const CLIENT_FILES = [".mcp.json", ".cursor/mcp.json", ".vscode/mcp.json"];
const CONTINUE_FOLDER = ".continue/mcpServers";

/** Files of agent clients in the folder of a project. */
export function clientFilesIn(folder: string): string[] {
  const single = settingsFilesIn(join(folder, CONTINUE_FOLDER)).map((name) => join(CONTINUE_FOLDER, name));
  return [...CLIENT_FILES, ...single].map((name) => join(folder, name)).filter((path) => existsSync(path));
}

/** The nearest folder with files of clients, by its real path. Those in the user's own folder are the user's. */
export function clientProject(cwd: string, home: string, env: NodeJS.ProcessEnv): string | null {
  const own = [realOf(home), realOf(userHome(env))];
  for (let folder = realOf(resolve(cwd)); ; folder = dirname(folder)) {
    const isOwn = own[1] === folder || isWithin(folder, own[0] ?? "");
    if (!isOwn && clientFilesIn(folder).length > 0) return folder;
    if (folder === dirname(folder)) return null;
  }
}

/** Most folders with such files are not meant for Toolcrib, so one counts as a project only once it was trusted. */
function trustedClientProject(cwd: string, home: string, env: NodeJS.ProcessEnv): string | null {
  const folder = clientProject(cwd, home, env);
  if (folder === null) return null;
  try {
    // Whether it is trusted as it is now is decided when it is read.
    const { configs } = JSON.parse(readFileSync(trustFile(home), "utf8")) as { configs?: object };
    return Object.hasOwn(configs ?? {}, folder) ? folder : null;
  } catch {
    return null;
  }
}

export function trustFile(home: string): string {
  return join(home, "trust.json");
}

function isWithin(folder: string, outer: string): boolean {
  return folder === outer || folder.startsWith(outer.endsWith(sep) ? outer : outer + sep);
}

function realOf(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

export function configIn(folder: string): string | undefined {
  return NAMES.map((name) => join(folder, name)).find((path) => existsSync(path));
}

function named(path: string, remark: string, { env, cwd, home }: FindOptions & { readonly home: string }): FoundConfig {
  const file = resolve(cwd, expandTilde(path, userHome(env)));
  if (existsSync(file)) return { named: file };
  // `connect` names it for clients also before there is one.
  if (file === homeConfigFile(home)) return { home: null, project: null };
  throw new ToolcribError("not_found", `There is no config file ${file}${remark}`, {
    hint: "Check the path, or leave it out to have toolcrib.json searched for.",
    details: { file },
  });
}
