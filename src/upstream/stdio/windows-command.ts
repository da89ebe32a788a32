/**
 * How a command is started on Windows, where `npx` is a batch file `npx.cmd`: Node finds only .exe files and refuses
 * batch files without a shell. They are run by cmd.exe with every character that means something to it escaped.
 */
import { existsSync } from "node:fs";
import { win32 } from "node:path";
import { ToolcribError } from "../../model/errors.ts";

export interface SpawnCommand {
  readonly file: string;
  readonly args: readonly string[];
  /** The arguments are quoted already. */
  readonly verbatim: boolean;
}

export function windowsCommand(
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  exists: (path: string) => boolean = existsSync,
): SpawnCommand {
  const file = resolve(command, env, exists);
  if (file === null || !/\.(cmd|bat)$/i.test(file)) return { file: file ?? command, args, verbatim: false };
  const line = [escapeMeta(win32.normalize(file)), ...args.map(escapeArgument)].join(" ");
  const shell = lookUp(env, "COMSPEC") ?? "cmd.exe";
  return { file: shell, args: ["/d", "/s", "/c", `"${line}"`], verbatim: true };
}

function resolve(
  command: string,
  env: Readonly<Record<string, string>>,
  exists: (path: string) => boolean,
): string | null {
  const endings = (lookUp(env, "PATHEXT") ?? ".COM;.EXE;.BAT;.CMD").split(";");
  const candidates =
    win32.extname(command) === "" ? endings.map((ending) => command + ending.toLowerCase()) : [command];
  // The current folder is not searched, though cmd.exe does: what lies there is not what was meant.
  const folders = /[\\/]/.test(command)
    ? [""]
    : (lookUp(env, "PATH") ?? "").split(";").filter((folder) => folder !== "");
  for (const folder of folders) {
    for (const candidate of candidates) {
      const path = folder === "" ? candidate : win32.join(folder, candidate);
      if (exists(path)) return path;
    }
  }
  return null;
}

function lookUp(env: Readonly<Record<string, string>>, name: string): string | undefined {
  return Object.entries(env).find(([key]) => key.toUpperCase() === name)?.[1];
}

const META = /[()\][%!^"`<>&|;, *?]/g;

function escapeMeta(text: string): string {
  return text.replace(META, "^$&");
}

/** Quoted for the program (backslashes double before a quote), then escaped twice: batch files read their arguments again. */
function escapeArgument(argument: string): string {
  if (/[\r\n\0]/.test(argument)) {
    throw new ToolcribError(
      "invalid_config",
      "An argument of a batch file holds a line break, which cmd.exe cannot carry.",
      {
        hint: "Give the program behind the batch file as `command`, such as node with the path of the script.",
      },
    );
  }
  const quoted = `"${argument.replace(/(?<!\\)(\\*)"/g, '$1$1\\"').replace(/(?<!\\)(\\*)$/, "$1$1")}"`;
  return escapeMeta(escapeMeta(quoted));
}
