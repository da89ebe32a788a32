/** The environment inside a bubblewrap cage: what the spec names, and a minimum that fits the cage. */
import { findProgram, isWithin } from "./find-program.ts";
import { CAGE_HOME } from "./system-mounts.ts";

/** Of the minimal environment these speak of the user, who is another one in there. */
const OWN: Readonly<Record<string, string>> = {
  HOME: CAGE_HOME,
  USER: "cage",
  LOGNAME: "cage",
  SHELL: "/bin/sh",
  TMPDIR: "/tmp",
};
const SYSTEM = ["/usr", "/bin", "/sbin", "/nix/store"];

/**
 * @param env What the program would have without a cage.
 * @param base The hub's own: what equals it was not named by the spec.
 * @param seen Paths besides the system that are there inside.
 */
export function cageEnvironment(
  env: Readonly<Record<string, string>>,
  base: NodeJS.ProcessEnv,
  seen: readonly string[],
): Record<string, string> {
  const inside: Record<string, string> = { ...env };
  for (const [name, value] of Object.entries(OWN)) {
    if (env[name] === undefined || env[name] === base[name]) inside[name] = value;
  }
  if (env["PATH"] === base["PATH"]) inside["PATH"] = pathInside(env["PATH"], seen);
  return inside;
}

/** Folders that are not there would only tell of the machine. */
function pathInside(path: string | undefined, seen: readonly string[]): string {
  const isSeen = (folder: string): boolean =>
    [...SYSTEM, ...seen].some((each) => isWithin(folder, each)) || seen.some((each) => isWithin(each, folder));
  const kept = (path ?? "").split(":").filter((folder) => folder.startsWith("/") && isSeen(folder));
  return [...new Set([...kept, "/usr/local/bin", "/usr/bin", "/bin"])].join(":");
}

/** How a program gets its environment from the shell that starts it. */
export interface HandedEnvironment {
  /** Shell commands, each on one line, that the shell reads from a pipe. */
  readonly lines: string;
  /** Words before the program, which hold names and never values. */
  readonly words: readonly string[];
}

/** The variable of the shell that reads the lines that holds a line break. */
export const LINE_BREAK = "toolcrib_break";
const SHELL_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
/** Shells refuse to set these, or give them values of their own. */
const OF_SHELLS =
  /^(?:_|UID|EUID|PPID|GROUPS|SHLVL|SHELLOPTS|OPTIND|LINENO|RANDOM|SRANDOM|SECONDS|EPOCH\w+|FUNCNAME|DIRSTACK|HISTCMD|BASH\w*)$/;

/**
 * A step that changes the user must not have this environment: LD_PRELOAD and its like would run the program's code as
 * root. So it comes after that, from a shell. What no shell can export (`a.b`, `UID`) is carried under another name to
 * GNU env, which fills it in by itself: its command line names `${toolcrib_cage_0}`.
 */
export function handedEnvironment(env: Readonly<Record<string, string>>): HandedEnvironment {
  const exported: [name: string, value: string][] = [];
  const renamed: string[] = [];
  const carriers: string[] = [];
  for (const [name, value] of Object.entries(env)) {
    if (SHELL_NAME.test(name) && !OF_SHELLS.test(name)) {
      exported.push([name, value]);
      continue;
    }
    const carrier = `toolcrib_cage_${carriers.length}`;
    carriers.push(carrier);
    exported.push([carrier, value]);
    renamed.push(`'${name.replaceAll(/[\\']/g, "\\$&")}='\${${carrier}}`);
  }
  const lines = exported.map(([name, value]) => `export ${name}=${quoted(value)}\n`).join("");
  if (carriers.length === 0) return { lines, words: [] };
  const split = [...carriers.map((each) => `-u ${each}`), "--", ...renamed].join(" ");
  return { lines, words: [findProgram("env", "/usr/bin:/bin") ?? "/usr/bin/env", "-S", split] };
}

function quoted(value: string): string {
  return `'${value.replaceAll("'", String.raw`'\''`).replaceAll("\n", `'"$${LINE_BREAK}"'`)}'`;
}
