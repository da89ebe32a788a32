/** How a server is really started, past programs that only start others. */
import type { ServerEntryInput } from "../../model/server-spec.ts";

export interface Launch {
  /** Without folder and ending, in lower case; empty for a server that is reached by an address. */
  readonly program: string;
  readonly args: readonly string[];
  readonly env: readonly (readonly [string, string])[];
}

export function launchOf({ command, args = [], env = {} }: ServerEntryInput): Launch {
  const variables = Object.entries(env);
  if (command === undefined) return { program: "", args: [], env: variables };
  return unwrapped({ program: programName(command), args, env: variables });
}

const DEEPEST = 8;

/** `env A=b program`, `sudo program`, `nohup program`. */
function unwrapped(launch: Launch, depth = 0): Launch {
  if (
    depth === DEEPEST ||
    !/^(?:env|sudo|doas|nohup|nice|time|exec|command|xargs|busybox|timeout|stdbuf|setsid)$/.test(launch.program)
  )
    return launch;
  const env = [...launch.env];
  for (const [index, word] of launch.args.entries()) {
    const at = word.indexOf("=");
    if (/^[A-Za-z_]\w*=/.test(word)) env.push([word.slice(0, at), word.slice(at + 1)]);
    else if (/^(?:-S|--split-string)/.test(word))
      return { ...launch, program: "sh", args: ["-c", launch.args.slice(index).join(" ")], env };
    else if (!word.startsWith("-") && !/^\d/.test(word)) {
      return unwrapped({ program: programName(word), args: launch.args.slice(index + 1), env }, depth + 1);
    }
  }
  return { ...launch, env };
}

interface HiddenProgram {
  readonly program: string;
  readonly text: string;
  readonly isEncoded: boolean;
}

const SHELL = /^(?:ba|z|da|k|mk|a|c|tc)?sh$|^fish$/;
const INTERPRETER =
  /^(?:node|nodejs|bun|deno|python[\d.]*w?|pypy[\d.]*|perl[\d.]*|ruby[\d.]*|lua[\d.]*|osascript|tsx|ts-node)$/;
const PACKAGE_RUNNER = /^(?:npx|npm|pnpm|pnpx|bunx)$/;

/** Options of the programs above that the next word belongs to. */
const TAKES_WORD = /^(?:-[oOrWXCIp]|--require|--import|--loader|--conditions|--package|--rcfile|--init-file|--prefix)$/;

/** The text of a program that stands among the arguments; undefined if there is none. */
export function hiddenProgram({ program, args }: Launch): HiddenProgram | undefined {
  const of = (option: RegExp, isEncoded = false): HiddenProgram | undefined => {
    const at = optionAt(args, option);
    return at === -1 ? undefined : { program, text: withoutOption(args.slice(at).join(" ")), isEncoded };
  };
  if (SHELL.test(program)) return of(/^-[a-z]*c[a-z]*$|^--command(?:=|$)|^--rcfile|^--init-file/i);
  // Any beginning of an option's name will do there.
  if (/^(?:powershell|pwsh)$/.test(program)) return of(/^[-/]e(?:c|n.*)?$/i, true) ?? of(/^[-/]c(?:o(?:m.*)?)?$/i);
  if (program === "cmd") return isPlainStart(args) ? undefined : of(/^\/[ckr]/i);
  if (INTERPRETER.test(program)) return of(/^(?:-c|-e|-pe?|--eval|--print|eval)(?:=|$)|^(?:--\w+=)?data:/);
  if (program === "php") return of(/^-[rBRE]/);
  return PACKAGE_RUNNER.test(program) ? of(/^(?:-c|--call)(?:=|$)/) : undefined;
}

/** Among the words before the script or the package: what comes after that is the server's own. */
function optionAt(args: readonly string[], option: RegExp): number {
  for (let index = 0; index < args.length; index++) {
    const word = args[index] ?? "";
    if (option.test(word)) return index;
    if (TAKES_WORD.test(word)) {
      if (args[index + 1]?.startsWith("data:") === true) return index + 1;
      index++;
    } else if (!/^-|^\/[a-z?]$/i.test(word) && !(index === 0 && /^(?:exec|x|dlx|run)$/.test(word))) return -1;
  }
  return -1;
}

function withoutOption(text: string): string {
  return text.replace(/^(?:[-/]\S*?|eval)(?:=|\s+|$)/, "") || text;
}

/** `cmd /c npx …`, as clients on Windows need it. */
function isPlainStart([option = "", program = "", ...rest]: readonly string[]): boolean {
  return (
    option.toLowerCase() === "/c" &&
    /^(?:npx|npm|pnpm|yarn|bunx?|node|uvx?|pipx|python|py|docker|deno)$/.test(programName(program)) &&
    !rest.some((word) => /[&|<>^%`]/.test(word))
  );
}

/** `C:\Program Files\nodejs\node.exe` is node. */
function programName(command: string): string {
  const base = command.split(/[/\\]/).at(-1) ?? "";
  return base.toLowerCase().replace(/\.(?:exe|cmd|bat|com|ps1)$/, "");
}

/** The line that would be typed; empty for a server that is reached by an address. */
export function startedText({ command, args = [] }: ServerEntryInput): string {
  return command === undefined ? "" : [command, ...args].map(typed).join(" ");
}

function typed(word: string): string {
  return /^[\w@%+=:,./\\~${}-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
