/**
 * How a server's variables get into its container. Not as `--env NAME=value`, which every user of the machine could
 * read in the process table: as an env file that is a pipe, or, where such a file cannot carry the text, by name from
 * the environment of the program that starts the container.
 */
import { ToolcribError } from "../../../model/errors.ts";
import { changesEngine, changesShell } from "./engine-environment.ts";

export interface CarriedEnvironment {
  /** Text of the env file; empty if there is none. */
  readonly file: string;
  /** For `--env NAME`. */
  readonly byName: readonly string[];
  /** What the starting program needs in its own environment for those. */
  readonly launcher: Readonly<Record<string, string>>;
  /** Of all of them. */
  readonly names: readonly string[];
}

/** Of the hub's machine: in an image these have values of their own. */
const OF_THE_HOST = new Set(["PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR"]);

/** What engines of all versions read back as it was written: they differ on quotes, on `#` and on blanks at the ends. */
const PLAIN = /^(?:[^\s"'`#$\\](?:[^\r\n\0"'`#$\\]*[^\s"'`#$\\])?)?$/;

const NAME = /^[A-Za-z_][\w.-]*$/;

/**
 * @param env The program's environment as it would be outside.
 * @param host The hub's own.
 * @param pipes Whether a pipe can be opened by its path, which Windows cannot.
 */
export function carryEnvironment(
  env: Readonly<Record<string, string>>,
  host: NodeJS.ProcessEnv,
  pipes = process.platform !== "win32",
): CarriedEnvironment {
  const lines: string[] = [];
  const launcher: Record<string, string> = {};
  const carried = withoutHost(env, host);
  for (const [name, value] of Object.entries(carried)) {
    if (pipes && NAME.test(name) && PLAIN.test(value)) lines.push(`${name}=${value}\n`);
    else if (isSafeByName(name, pipes)) launcher[name] = value;
    else throw cannotCarry(name);
  }
  return { file: lines.join(""), byName: Object.keys(launcher), launcher, names: Object.keys(carried) };
}

/** A shell reads it too where a pipe is made for the others. */
function isSafeByName(name: string, pipes: boolean): boolean {
  return NAME.test(name) && !changesEngine(name) && !(pipes && changesShell(name));
}

function withoutHost(env: Readonly<Record<string, string>>, host: NodeJS.ProcessEnv): Record<string, string> {
  const named = Object.entries(env).filter(([name, value]) => !(OF_THE_HOST.has(name) && host[name] === value));
  return Object.fromEntries(named);
}

function cannotCarry(name: string): ToolcribError {
  return new ToolcribError(
    "invalid_config",
    `The variable ${JSON.stringify(name)} cannot be given to a container with this value: an env file holds neither line breaks nor quotes, and by name it would change what starts the container.`,
    { hint: "Change its value, or put it into a file that `sandbox.read` names.", details: { sent: false } },
  );
}
