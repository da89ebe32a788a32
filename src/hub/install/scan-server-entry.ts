/**
 * What is suspicious about the entry of a server when its values are filled in: the scan of a skill sees templates, and
 * what runs is this. Nothing around it can excuse a finding here, since no line of it is an example.
 */
import { excerptOf } from "../../base/visible-text.ts";
import { scanTexts } from "../../guard/scan-texts.ts";
import type { ServerEntryInput } from "../../model/server-spec.ts";
import type { SkillFinding, SkillSeverity } from "../../model/skill.ts";
import { parseSkill } from "../../skills/read/read-skill.ts";
import { signsOf } from "../../skills/scan/rule.ts";
import { guardSigns } from "../../skills/scan/rules/guard-findings.ts";
import { RULES } from "../../skills/scan/scan-skill.ts";
import { scannedText } from "../../skills/scan/scanned-text.ts";
import type { Subject } from "../../skills/scan/subject.ts";

type FindingDraft = Pick<SkillFinding, "code" | "severity" | "message"> & { readonly excerpt?: string };

/** Findings in no particular order. `file` is `server <id>`; no finding contains a value of the environment. */
export function scanServerEntry(id: string, entry: ServerEntryInput): SkillFinding[] {
  const launch = resolveLaunch(entry);
  const found = new Map<string, SkillFinding>();
  for (const draft of [...variableFindings(launch), ...inlineProgramFindings(launch), ...textFindings(entry, launch)]) {
    const finding: SkillFinding = { ...draft, file: `server ${id}` };
    found.set(`${finding.code} ${finding.message}`, finding);
  }
  return [...found.values()];
}

function variableFindings({ env }: Launch): FindingDraft[] {
  return env.flatMap(([name, value]): FindingDraft[] => {
    const severity = loadingVariableSeverity(name, value);
    const message = `The variable ${excerptOf(name, 0, name.length)} changes what a program loads or runs.`;
    return severity === undefined ? [] : [{ code: "loading_variable", severity, message }];
  });
}

function inlineProgramFindings(launch: Launch): FindingDraft[] {
  const hidden = findInlineProgram(launch);
  if (hidden === undefined) return [];
  const { program, text, isEncoded } = hidden;
  const message = isEncoded
    ? `${program} runs an encoded program, which no one can read.`
    : `${program} runs a program that is written in an argument.`;
  const excerpt = excerptOf(text, 0, text.length);
  return [{ code: "shell_command", severity: isEncoded ? "refuse" : "warn", message, excerpt }];
}

/** The line as it would be typed, and what a shell or an interpreter reads, without the quoting around it. */
function textFindings(entry: ServerEntryInput, launch: Launch): FindingDraft[] {
  const lines = [commandLine(entry), findInlineProgram(launch)?.text ?? "", entry.url ?? ""];
  return lines.flatMap((line) => (line === "" ? [] : scanLine(line)));
}

function scanLine(line: string): FindingDraft[] {
  const text = scannedText("entry.sh", "script", line);
  const skill = { ...parseSkill(new TextEncoder().encode("# A server"), "server"), dir: "" };
  const subject: Subject = { skill, document: text, security: false, isOwn: () => false };
  const signs = [
    ...RULES.flatMap((rule) => [...signsOf(rule, text, subject)]),
    ...guardSigns(text, scanTexts([text.raw], { place: "skill" }).get(text.raw) ?? [], subject),
  ];
  return signs.map(({ code, severity, message, near = line }) => {
    return { code, severity, message, excerpt: excerptOf(near, 0, near.length) };
  });
}

export interface Launch {
  /** Without folder and ending, in lower case; empty for a server that is reached by an address. */
  readonly program: string;
  readonly args: readonly string[];
  readonly env: readonly (readonly [string, string])[];
}

function resolveLaunch({ command, args = [], env = {} }: ServerEntryInput): Launch {
  const variables = Object.entries(env);
  if (command === undefined) return { program: "", args: [], env: variables };
  return unwrapLaunch({ program: programName(command), args, env: variables });
}

const MAX_DEPTH = 8;

/** `env A=b program`, `sudo program`, `nohup program`. */
function unwrapLaunch(launch: Launch, depth = 0): Launch {
  if (
    depth === MAX_DEPTH ||
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
      return unwrapLaunch({ program: programName(word), args: launch.args.slice(index + 1), env }, depth + 1);
    }
  }
  return { ...launch, env };
}

interface InlineProgram {
  readonly program: string;
  readonly text: string;
  readonly isEncoded: boolean;
}

const SHELL = /^(?:ba|z|da|k|mk|a|c|tc)?sh$|^fish$/;
const INTERPRETER =
  /^(?:node|nodejs|bun|deno|python[\d.]*w?|pypy[\d.]*|perl[\d.]*|ruby[\d.]*|lua[\d.]*|osascript|tsx|ts-node)$/;
const PACKAGE_RUNNER = /^(?:npx|npm|pnpm|pnpx|bunx)$/;

/** Options of the programs above that the next word belongs to. */
const TAKES_VALUE =
  /^(?:-[oOrWXCIp]|--require|--import|--loader|--conditions|--package|--rcfile|--init-file|--prefix)$/;

/** The program that is written in the arguments; undefined if there is none. */
function findInlineProgram({ program, args }: Launch): InlineProgram | undefined {
  const of = (option: RegExp, isEncoded = false): InlineProgram | undefined => {
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
    if (TAKES_VALUE.test(word)) {
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
export function commandLine({ command, args = [] }: ServerEntryInput): string {
  return command === undefined ? "" : [command, ...args].map(shellQuoted).join(" ");
}

function shellQuoted(word: string): string {
  return /^[\w@%+=:,./\\~${}-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** Their only use is to run something else than what is started. */
const RUNS_OTHER =
  /^(?:LD_PRELOAD|LD_AUDIT|DYLD_INSERT_LIBRARIES|BASH_ENV|PYTHONSTARTUP|PERL5DB|PERL5OPT|RUBYOPT|GIT_(?:SSH|SSH_COMMAND|EXTERNAL_DIFF|PROXY_COMMAND|ASKPASS|EDITOR|PAGER)|JAVA_TOOL_OPTIONS|_JAVA_OPTIONS|JDK_JAVA_OPTIONS|PROMPT_COMMAND|NPM_CONFIG_(?:REGISTRY|.+_REGISTRY|SCRIPT_SHELL|NODE_OPTIONS|USERCONFIG|GLOBALCONFIG|GIT)|(?:UV|PIP)_(?:DEFAULT_INDEX|INDEX_URL|INDEX|EXTRA_INDEX_URL|CONFIG_FILE))$/;

/** They have honest uses too. */
const MAY_LOAD =
  /^(?:LD_.+|DYLD_.+|PATH|PATHEXT|COMSPEC|NODE_OPTIONS|NODE_PATH|NODE_REPL_EXTERNAL_MODULE|PYTHON(?:PATH|HOME|INSPECT|BREAKPOINT|USERBASE|EXECUTABLE)|PERL5LIB|PERLLIB|RUBYLIB|GEM_(?:HOME|PATH)|CLASSPATH|NPM_CONFIG_.+|GIT_(?:CONFIG.*|EXEC_PATH|TEMPLATE_DIR))$/;

const LOADS_MODULE =
  /(?:^|\s)(?:-r|--require|--import|--loader|--experimental-loader)(?:[\s=]|$)|--inspect|--eval|data:/;

/** Undefined for a variable that loads nothing. Names are compared as Windows does. */
function loadingVariableSeverity(name: string, value: string): SkillSeverity | undefined {
  const upper = name.toUpperCase().replaceAll("-", "_");
  // Many programs call their stage of deployment so; a shell takes it for a file.
  if (upper === "ENV") return /[/\\`$]/.test(value) ? "refuse" : undefined;
  if (upper === "NODE_OPTIONS" && LOADS_MODULE.test(value)) return "refuse";
  if (RUNS_OTHER.test(upper)) return "refuse";
  return MAY_LOAD.test(upper) ? "warn" : undefined;
}
