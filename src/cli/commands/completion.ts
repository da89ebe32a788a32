/** `toolcrib completion`: what a shell needs to complete a command line, with the names that the running hub has. */
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { configFiles, toolcribHome } from "../../config/find-config.ts";
import { findHub } from "../../hub/activity/hub-records.ts";
import { isJsonObject, parseJson } from "../../model/json.ts";
import { loadCommandConfigQuietly } from "../command-config.ts";
import {
  type ArgumentEntry,
  type CommandEntry,
  type CommandHandler,
  type Invocation,
  unknownAction,
} from "../command.ts";

const SCRIPTS: Readonly<Record<string, string>> = {
  bash: `_toolcrib() {
  local IFS=$'\\n'
  COMPREPLY=($(toolcrib completion words -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _toolcrib toolcrib`,
  zsh: `#compdef toolcrib
_toolcrib() {
  local -a found
  found=("\${(@f)$(toolcrib completion words -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -n "\${found[1]}" ]]; then compadd -a found; else _files; fi
}
compdef _toolcrib toolcrib`,
  fish: `complete -c toolcrib -a '(toolcrib completion words -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'`,
};

export function completionOf(commands: readonly CommandEntry[]): CommandHandler {
  return async (invocation) => {
    const { args, out } = invocation;
    const [shell = "", ...words] = args;
    const lines = shell === "words" ? await completionsOf(invocation, commands, words) : [scriptOf(shell)];
    for (const line of lines) out.line(line);
    return 0;
  };
}

function scriptOf(shell: string): string {
  const script = Object.hasOwn(SCRIPTS, shell) ? SCRIPTS[shell] : undefined;
  if (script === undefined) throw unknownAction("completion", shell, "Use bash, zsh or fish.");
  return script;
}

/** A name that a shell takes as one word, whoever chose it. */
const PLAIN_WORD = /^[\w@%+:,./-]{1,200}$/;

async function completionsOf(
  invocation: Invocation,
  commands: readonly CommandEntry[],
  words: readonly string[],
): Promise<string[]> {
  const typed = words.at(-1) ?? "";
  const before = words.slice(0, -1).filter((word) => !word.startsWith("-"));
  const entry = commands.find(({ name }) => name === before[0]);
  const found = typed.startsWith("-")
    ? optionsOf(entry)
    : entry === undefined
      ? commands.map(({ name }) => name)
      : await valuesOf(invocation, entry, before.slice(1));
  return found.filter((word) => word.startsWith(typed) && PLAIN_WORD.test(word)).toSorted();
}

function optionsOf(entry: CommandEntry | undefined): string[] {
  const own = entry?.options.flatMap(({ flags }) => flags.match(/--[a-z-]+/g) ?? []) ?? [];
  return [...own, "--json", "--config", "--quiet", "--help"];
}

/** The values of the argument that comes next. */
async function valuesOf(
  invocation: Invocation,
  entry: CommandEntry,
  given: readonly string[],
): Promise<readonly string[]> {
  const last = entry.arguments.at(-1);
  const next = entry.arguments[given.length] ?? (last?.syntax.includes("...") === true ? last : undefined);
  if (next?.values !== undefined) return next.values;
  return next?.names === undefined ? [] : namesOf(invocation, next.names);
}

const LISTS: Readonly<Record<NonNullable<ArgumentEntry["names"]>, { argv: readonly string[]; key: string }>> = {
  tool: { argv: ["list"], key: "name" },
  prompt: { argv: ["list", "--prompts"], key: "name" },
  resource: { argv: ["list", "--resources"], key: "uri" },
  server: { argv: ["status"], key: "id" },
  client: { argv: ["clients"], key: "id" },
  skill: { argv: ["skill", "list"], key: "name" },
};

async function namesOf(invocation: Invocation, kind: keyof typeof LISTS): Promise<string[]> {
  const { env, cwd, flags, stdin } = invocation;
  const home = toolcribHome(env);
  const hasHub = findHub(home, configFiles({ config: flags.text("config"), env, cwd, home })) !== undefined;
  if (!hasHub && kind === "server") {
    return (await loadCommandConfigQuietly(invocation, { asks: false })).servers.map(({ id }) => id);
  }
  // Without a hub a list would start every server, for one press of a key.
  if (!hasHub && kind !== "client" && kind !== "skill") return [];
  const { argv, key } = LISTS[kind];
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  stderr.resume();
  const printed = text(stdout);
  await invocation.runCommandLine([...argv, "--json", "--quiet"], { env, cwd, stdin, stdout, stderr });
  stdout.end();
  const listed = parseJson(await printed);
  return Array.isArray(listed)
    ? listed.flatMap((each) => (isJsonObject(each) && typeof each[key] === "string" ? [each[key]] : []))
    : [];
}
