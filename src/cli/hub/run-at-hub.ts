/**
 * Runs a command at a hub: the one that serves its config, if one runs, or that of `--hub`. It sees what the hub's clients see
 * and starts no server.
 */
import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { Duplex, Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { terminalText } from "../../base/visible-text.ts";
import { configFiles, toolcribHome } from "../../config/find-config.ts";
import { findHub, type HubRecord, readHubRecords } from "../../hub/activity/hub-records.ts";
import type { Scope } from "../../model/caller.ts";
import { ToolcribError } from "../../model/errors.ts";
import { VERSION } from "../../model/version.ts";
import { LineSplitter } from "../../upstream/stdio/line-framing.ts";
import { openHubLink } from "../bridge/hub-link.ts";
import type { Flags, Terminal } from "../command.ts";
import { namedEditorSession, namedHub, RemoteHub, tokenOf } from "../remote-hub.ts";
import { writtenElsewhere } from "../output.ts";
import { fileOf } from "../tool-arguments.ts";
import {
  COMMAND_PATH,
  COMMAND_PROTOCOL,
  type CommandStart,
  type InputFrame,
  type OutputFrame,
  OutputFrameSchema,
  SHOWN_VARIABLES,
} from "./command-frames.ts";

const MAX_LINE_BYTES = 256 * 1024 * 1024;

export interface HubCommand {
  readonly argv: readonly string[];
  readonly args: readonly string[];
  readonly flags: Flags;
  readonly scope: Scope;
  /** The session of an editor that it is to join. */
  readonly joined: string | undefined;
}

/** The exit code; undefined if the command has to work alone. */
export async function runAtHub(command: HubCommand, terminal: Terminal): Promise<number | undefined> {
  const { flags, joined } = command;
  const { env, cwd } = terminal;
  const [wanted, token] = [flags.text("hub"), flags.text("token")];
  if (wanted !== undefined && (flags.has("standalone") || flags.text("config") !== undefined)) {
    throw new ToolcribError("invalid_arguments", "--hub cannot be combined with --standalone or --config.");
  }
  if (joined !== undefined && flags.has("standalone")) {
    throw new ToolcribError("invalid_arguments", "--session cannot be combined with --standalone.");
  }
  if (flags.has("standalone")) return undefined;
  const home = toolcribHome(env);
  if (joined !== undefined && wanted === undefined) {
    const { hub } = await namedEditorSession(home, joined);
    if (token !== undefined) return runWithToken(new RemoteHub(hub.url, token), command, terminal);
    const exitCode = await runAsUser(hub, command, terminal);
    if (exitCode !== undefined) return exitCode;
    throw new ToolcribError("server_unavailable", `The editor's agent (process ${hub.pid}) does not run this command.`);
  }
  if (wanted !== undefined) {
    const { own, hub } = namedHub(home, wanted, token ?? tokenOf(env));
    const isAsUser = own !== undefined && token === undefined && own.version === VERSION;
    return (isAsUser ? await runAsUser(own, command, terminal) : undefined) ?? runWithToken(hub, command, terminal);
  }
  const files = configFiles({ config: flags.text("config"), env, cwd, home });
  const own = findHub(home, files);
  if (own === undefined) {
    if (token === undefined) {
      if (!files.some(existsSync)) tellOfOthers(home, command, terminal);
      return undefined;
    }
    throw new ToolcribError("server_unavailable", "No hub serves this config, so there is none for the token.", {
      hint: "Name one with --hub <url>, or omit --token.",
    });
  }
  if (token !== undefined) return runWithToken(new RemoteHub(own.url, token), command, terminal);
  return runAsUser(own, command, terminal);
}

/** Whoever started a hub with `--config` and has no config of their own most likely means that hub. */
function tellOfOthers(home: string, { flags }: HubCommand, { stderr }: Terminal): void {
  const served = readHubRecords(home).flatMap(({ config, editor }) => (editor === true ? [] : (config ?? [])));
  const other = served.findLast(existsSync);
  if (other === undefined || flags.has("quiet")) return;
  stderr.write(
    `note: There is no config here, but a hub with another one is running. To use it: --config ${terminalText(other)}\n`,
  );
}

/** With the token of the hub's own file. */
async function runAsUser(hub: HubRecord, command: HubCommand, terminal: Terminal): Promise<number | undefined> {
  const { flags, scope } = command;
  const tell = (text: string): void => {
    if (!flags.has("quiet")) terminal.stderr.write(`note: ${text}\n`);
  };
  if (hub.version !== VERSION) {
    tell(`The hub that runs is version ${hub.version ?? "unknown"}, this is ${VERSION}; this command works alone.`);
    return undefined;
  }
  const hello = { version: VERSION, pid: process.pid, cwd: terminal.cwd };
  const link = await openHubLink(hub, hello, { path: COMMAND_PATH, protocol: COMMAND_PROTOCOL }).catch(() => undefined);
  if (link === undefined) return undefined;
  const send = (frame: CommandStart | InputFrame): void => void link.write(`${JSON.stringify(frame)}\n`);
  send(startOf(command, terminal));
  const { stdin } = terminal;
  const onInput = (chunk: Buffer): void => send({ input: chunk.toString("base64") });
  const onEnd = (): void => send({ inputEnded: true });
  // Otherwise the input belongs to the script that runs the command.
  if (stdin.isTTY || flags.text("args") === "-") stdin.on("data", onInput).once("end", onEnd);
  else onEnd();
  const outcome = await show(link, terminal);
  stdin.off("data", onInput).off("end", onEnd).pause();
  if (typeof outcome === "number") return outcome;
  const token = tokenOf(terminal.env);
  if (token !== undefined) return runWithToken(new RemoteHub(hub.url, token), command, terminal);
  tell(
    `With http.auth the hub runs this command only for a token with the scope ${scope} (--token or TOOLCRIB_TOKEN); it works alone.`,
  );
  return undefined;
}

async function runWithToken(hub: RemoteHub, command: HubCommand, terminal: Terminal): Promise<number> {
  const { flags, argv } = command;
  const { stdin, cwd } = terminal;
  // Before the call, as everywhere: an existing file is reported first.
  const { saveTarget, saveParts } = await import("../commands/call.ts");
  const target = saveTarget({ flags, cwd });
  const input = flags.text("args") === "-" ? (await buffer(stdin)).toString("base64") : undefined;
  const start: CommandStart = {
    ...startOf({ ...command, argv: withoutHub(argv) }, terminal),
    input,
    files: namedFiles(command, cwd),
  };
  const note = (text: string): void => {
    if (!flags.has("quiet")) terminal.stderr.write(`${terminalText(text)}\n`);
  };
  const { body, version } = await hub.open("POST", COMMAND_PATH, start);
  if (version !== VERSION) note(`note: The hub is version ${version ?? "unknown"}, this is ${VERSION}.`);
  const outcome = await show(body, terminal, {
    shown: writtenElsewhere,
    save: (save) => {
      if (target === undefined) return;
      const parts = save.map(({ bytes, ...part }) => ({ ...part, bytes: Buffer.from(bytes, "base64") }));
      saveParts(target, parts, { note });
    },
  });
  if (typeof outcome === "number") return outcome;
  throw new ToolcribError("denied", `The token lacks the scope ${outcome}.`);
}

type SaveFrame = Extract<OutputFrame, { save: unknown }>["save"];

interface ShowOptions {
  /** Makes text of a hub that is not the user's own safe for the terminal. */
  readonly shown?: (text: string) => string;
  readonly save?: (parts: SaveFrame) => void;
}

/** Writes what the hub sends. Resolves with the exit code, or with the scope that the command lacks. */
async function show(
  from: Duplex | Readable,
  { stdout, stderr }: Terminal,
  { shown = (text) => text, save = () => {} }: ShowOptions = {},
): Promise<number | Scope> {
  let outcome: number | Scope | undefined;
  let failure: unknown;
  const splitter = new LineSplitter({
    maxBytes: MAX_LINE_BYTES,
    onLine: (line) => {
      if (line === "") return;
      const frame = readFrame(line);
      if ("out" in frame) stdout.write(shown(frame.out));
      else if ("err" in frame) stderr.write(shown(frame.err));
      else if ("save" in frame) save(frame.save);
      else outcome = "exit" in frame ? frame.exit : frame.needs;
    },
    onOversize: () => from.destroy(),
  });
  from
    .on("data", (chunk: Buffer) => {
      try {
        splitter.push(chunk);
      } catch (error) {
        failure = error;
        from.destroy();
      }
    })
    .on("error", () => {});
  from.resume();
  await new Promise((done) => from.once("close", done));
  if (failure !== undefined) throw failure;
  if (outcome !== undefined) return outcome;
  throw new ToolcribError("server_unavailable", "The hub ended while the command was running.", {
    hint: "A tool that it called may have run: look before you call it again.",
  });
}

function readFrame(line: string): OutputFrame {
  try {
    return OutputFrameSchema.parse(JSON.parse(line));
  } catch {
    throw new ToolcribError("server_unavailable", "The hub's answer to the command cannot be read.", {
      hint: `Is it a hub of version ${VERSION}?`,
    });
  }
}

function startOf({ argv, scope }: HubCommand, { env, cwd, stdin, stdout, stderr }: Terminal): CommandStart {
  const shown = SHOWN_VARIABLES.flatMap((name): [string, string][] => {
    const value = env[name];
    return value === undefined ? [] : [[name, value]];
  });
  const facts = (sink: { isTTY?: boolean; columns?: number }): CommandStart["stdout"] => ({
    isTTY: sink.isTTY === true,
    ...((sink.columns ?? 0) > 0 ? { columns: sink.columns } : {}),
  });
  return {
    argv: [...argv],
    ...{ version: VERSION, scope, cwd, pid: process.pid },
    env: Object.fromEntries(shown),
    stdin: facts(stdin),
    stdout: facts(stdout),
    stderr: facts(stderr),
  };
}

/** The files of `key=@file`, which are on this machine. One that cannot be read is reported by the command. */
function namedFiles({ args }: HubCommand, cwd: string): Record<string, string> {
  const files = args.flatMap((typed): [string, string][] => {
    const path = fileOf(typed);
    if (path === undefined) return [];
    try {
      return [[path, readFileSync(resolve(cwd, path)).toString("base64")]];
    } catch {
      return [];
    }
  });
  return Object.fromEntries(files);
}

/** The hub needs neither; the token is in a header. */
function withoutHub(argv: readonly string[]): string[] {
  const kept: string[] = [];
  for (let at = 0; at < argv.length; at++) {
    const each = argv[at] ?? "";
    if (each === "--") return [...kept, ...argv.slice(at)];
    if (each === "--hub" || each === "--token") at += 1;
    else if (!/^--(?:hub|token)=/.test(each)) kept.push(each);
  }
  return kept;
}
