/** Builds the program from the command table, runs one command and returns its exit code. */
import { sep } from "node:path";
import { Command, CommanderError, InvalidArgumentError, Option } from "commander";
import type { Scope } from "../model/caller.ts";
import { asToolcribError, systemErrorCode, ToolcribError } from "../model/errors.ts";
import { VERSION } from "../model/version.ts";
import {
  type AttachedHub,
  COMMAND_GROUPS,
  type CommandEntry,
  exitCodeOf,
  Flags,
  type OptionEntry,
  type Terminal,
} from "./command.ts";
import { COMMANDS, session } from "./command-table.ts";
import { Output, type Sink } from "./output.ts";

function isJsonLog(word: string, next: string | undefined): boolean {
  return word === "--log-format" && next === "json";
}

const USAGE_EXIT = exitCodeOf("invalid_arguments");

/** Runs the command line `argv` (without node and script) and resolves with the exit code. Never rejects. */
export async function runCommandLine(typed: readonly string[], terminal: Terminal): Promise<number> {
  const isBare = isBareCommand(typed, terminal);
  const argv = isBare ? [SETUP, ...typed] : typed[0] === "help" ? [...typed.slice(1), "--help"] : typed;
  const dashesAt = argv.indexOf("--");
  const beforeDashes = dashesAt === -1 ? argv : argv.slice(0, dashesAt);
  const isQuiet = beforeDashes.includes("--quiet");
  const isJson = beforeDashes.some((word, at) => word === "--log-format=json" || isJsonLog(word, beforeDashes[at + 1]));
  // Loaded here, because help needs no log.
  const { Log } = isJson ? await import("../telemetry/log.ts") : {};
  // Read before parsing, because a usage error leaves no parsed options.
  const out = new Output({
    stdout: terminal.stdout,
    stderr: terminal.stderr,
    env: terminal.env,
    json: beforeDashes.includes("--json"),
    quiet: isQuiet,
    jsonLog: Log && ((write, mask) => new Log({ format: "json", level: isQuiet ? "error" : "info", write, mask })),
    redactor: terminal.redactor,
  });
  let exitCode = 0;
  // All of them are for help and for names that are none: making them takes longer than most commands need to parse.
  const named = COMMANDS.filter(({ name }) => name === argv[0]);
  const commands = named.length > 0 ? named : COMMANDS;
  const program = buildProgram(terminal.stdout, commands, async (entry, args, options) => {
    const { env, cwd, stdin, attached } = terminal;
    const flags = new Flags(options);
    // Loaded here, because help needs no home.
    const [{ toolcribHome }, { assertSafeHome }] = await Promise.all([
      import("../config/find-config.ts"),
      import("../files/path-safety.ts"),
    ]);
    assertSafeHome(toolcribHome(env), env);
    const scope = typeof entry.atHub === "function" ? entry.atHub(args) : entry.atHub;
    if (attached !== undefined) assertMayRun(entry, scope, attached, flags);
    else if (scope !== undefined) {
      const { runAtHub } = await import("./hub/run-at-hub.ts");
      const joined = entry.options.includes(session) ? flags.text("session") : undefined;
      const done = await runAtHub({ argv, args, flags, scope, joined }, terminal);
      if (done !== undefined) {
        exitCode = done;
        return;
      }
    } else if (entry.atHub !== undefined && flags.text("hub") !== undefined) {
      throw notAtHub(`toolcrib ${entry.name} ${args[0] ?? ""}`.trim());
    }
    const run = isBare ? (await import("./commands/setup.ts")).runBare : await entry.load();
    exitCode = await run({ args, flags, dashes: dashesAt !== -1, out, env, cwd, stdin, attached, runCommandLine });
  });
  try {
    await program.parseAsync([...argv], { from: "user" });
  } catch (thrown) {
    exitCode = report(await explainHome(thrown, terminal.env), out, program, argv);
  }
  await out.flush();
  return exitCode;
}

const SETUP = "setup";

/** `toolcrib` without a command, typed by a person, or with `--yes`. In a script it prints the help. */
function isBareCommand(typed: readonly string[], { stdin, stdout, attached }: Terminal): boolean {
  if (attached !== undefined || !typed.every((word) => word === "--yes" || word === "--quiet")) return false;
  return typed.includes("--yes") || (stdin.isTTY && stdout.isTTY === true);
}

/** At the hub nothing but this says what a command line may do there. */
function assertMayRun(
  entry: CommandEntry,
  scope: Scope | undefined,
  { caller, files }: AttachedHub,
  flags: Flags,
): void {
  if (scope === undefined)
    throw new ToolcribError("invalid_arguments", `toolcrib ${entry.name} does not run at a hub.`);
  if (!caller.scopes.has(scope)) {
    throw new ToolcribError("denied", `toolcrib ${entry.name} needs the scope "${scope}" at this hub.`, {
      hint: "http.auth says which scopes a token has.",
    });
  }
  if (files !== undefined && flags.text("config") !== undefined) {
    throw new ToolcribError("invalid_arguments", "A hub on another machine has its own config: omit --config.");
  }
}

function notAtHub(command: string): ToolcribError {
  return new ToolcribError("invalid_arguments", `${command} does not work on another hub.`, {
    hint: "It uses files of the machine that it runs on. Run it on the hub's machine, or use the web page.",
  });
}

type Start = (entry: CommandEntry, args: string[], options: Record<string, unknown>) => Promise<void>;

function buildProgram(stdout: Sink, commands: readonly CommandEntry[], start: Start): Command {
  const program = new Command("toolcrib")
    .description("One guarded counter where any agent checks out any tool.")
    .usage("<command> [options]")
    .version(VERSION, "-V, --version", "print the version")
    .helpOption("-h, --help", "show help")
    .helpCommand(false)
    .option("--json", "print only JSON on stdout")
    .option("--config <file>", "config file to use")
    .option("--quiet", "hide notes and warnings")
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({ writeOut: (text) => void stdout.write(text), writeErr: () => undefined })
    .exitOverride();
  for (const group of COMMAND_GROUPS) {
    program.commandsGroup(`${group}:`);
    for (const entry of commands.filter((each) => each.group === group)) addCommand(program, entry, start);
  }
  return program;
}

function addCommand(program: Command, entry: CommandEntry, start: Start): void {
  const command = program.command(entry.name).description(entry.summary);
  for (const { syntax, summary } of entry.arguments) command.argument(syntax, summary);
  for (const option of entry.options) command.addOption(optionOf(option));
  if (entry.examples !== undefined) {
    command.addHelpText("after", `\nExamples:\n${entry.examples.map((example) => `  ${example}`).join("\n")}`);
  }
  command.action(() => start(entry, command.args, command.optsWithGlobals()));
}

function optionOf({ flags, summary, kind }: OptionEntry): Option {
  const option = new Option(flags, summary);
  if (kind === "milliseconds") return option.argParser(parseMilliseconds);
  if (kind === "list") return option.argParser((value, previous: string[] | undefined) => [...(previous ?? []), value]);
  return option;
}

function parseMilliseconds(text: string): number {
  if (!/^[1-9]\d{0,9}$/.test(text))
    throw new InvalidArgumentError("It must be a positive whole number of milliseconds.");
  return Number(text);
}

/** Codes of a file system that refuses a change. Most commands write to the home. */
const REFUSED = new Set(["EACCES", "EPERM", "EROFS", "ENOTDIR"]);

async function explainHome(thrown: unknown, env: NodeJS.ProcessEnv): Promise<unknown> {
  const { path } = (thrown instanceof Error ? thrown : {}) as NodeJS.ErrnoException;
  if (path === undefined || !REFUSED.has(systemErrorCode(thrown) ?? "")) return thrown;
  const { toolcribHome } = await import("../config/find-config.ts");
  const home = toolcribHome(env);
  if (path !== home && !path.startsWith(`${home}${sep}`)) return thrown;
  return new ToolcribError("internal", `Toolcrib cannot write to its home: ${asToolcribError(thrown).message}`, {
    hint: "Change the permissions of that folder, or set TOOLCRIB_HOME to another one.",
    cause: thrown,
  });
}

/** Shows the error and returns its exit code. */
function report(thrown: unknown, out: Output, program: Command, argv: readonly string[]): number {
  if (thrown instanceof CommanderError) {
    if (thrown.exitCode === 0) return 0;
    if (thrown.code === "commander.help") {
      if (out.json) out.error({ code: "invalid_arguments", message: "No command was given." });
      else out.note(program.helpInformation().trimEnd());
      return USAGE_EXIT;
    }
    const command = program.commands.find((each) => argv.includes(each.name()));
    out.error(usageError(thrown, command).toObject());
    return USAGE_EXIT;
  }
  const error = asToolcribError(thrown);
  out.error(error.toObject());
  return exitCodeOf(error.code);
}

/** Commander writes `error: …`, and a suggestion in parentheses on a second line. */
function usageError(error: CommanderError, command: Command | undefined): ToolcribError {
  if (/unknown option '--(?:hub|token)/.test(error.message)) {
    if (command?.name() !== "connect") return notAtHub("This command");
    return new ToolcribError(
      "invalid_arguments",
      "toolcrib connect names the hub with --url, and takes no token as text.",
      {
        hint: "Name the variable that the token is in with --token-env NAME, or pass it on stdin with --token-stdin.",
      },
    );
  }
  const [first = "", ...rest] = error.message.replace(/^error: /, "").split("\n");
  const hint = rest.join(" ").replace(/^\((.*)\)$/, "$1");
  if (error.code === "commander.missingArgument" && command !== undefined) {
    const usage = `Usage: toolcrib ${command.name()} ${command.usage()}`;
    const example = COMMANDS.find(({ name }) => name === command.name())?.examples?.[0];
    return new ToolcribError("invalid_arguments", `${first.charAt(0).toUpperCase()}${first.slice(1)}.`, {
      hint: example === undefined ? usage : `${usage}, for example: ${example}`,
    });
  }
  return new ToolcribError("invalid_arguments", first.charAt(0).toUpperCase() + first.slice(1), {
    hint:
      hint === "" ? "Run toolcrib --help for the commands, or toolcrib <command> --help for the options of one." : hint,
  });
}
