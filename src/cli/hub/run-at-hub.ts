/** Runs a command at the hub that serves its config, if one runs: it sees what the hub's clients see and starts no server. */
import { configFiles, toolcribHome } from "../../config/find-config.ts";
import { findHub } from "../../hub/activity/hub-records.ts";
import { ToolcribError } from "../../model/errors.ts";
import { VERSION } from "../../model/version.ts";
import { LineSplitter } from "../../upstream/stdio/line-framing.ts";
import { openHubLink } from "../bridge/hub-link.ts";
import type { Flags, Terminal } from "../command.ts";
import {
  COMMAND_PATH,
  COMMAND_PROTOCOL,
  type CommandStart,
  type InputFrame,
  type OutputFrame,
  SHOWN_VARIABLES,
} from "./command-frames.ts";

const MAX_LINE_BYTES = 256 * 1024 * 1024;

/** The exit code; undefined if no hub serves this config, or none of this version. */
export async function runAtHub(argv: readonly string[], flags: Flags, terminal: Terminal): Promise<number | undefined> {
  const { env, cwd } = terminal;
  if (flags.has("standalone")) return undefined;
  const home = toolcribHome(env);
  const hub = findHub(home, configFiles({ config: flags.text("config"), env, cwd, home }));
  if (hub === undefined) return undefined;
  if (hub.version !== VERSION) {
    const found = `The hub that runs is version ${hub.version ?? "unknown"}, this is ${VERSION}`;
    if (!flags.has("quiet")) terminal.stderr.write(`note: ${found}; this command works alone.\n`);
    return undefined;
  }
  const hello = { version: VERSION, pid: process.pid, cwd };
  const link = await openHubLink(hub, hello, { path: COMMAND_PATH, protocol: COMMAND_PROTOCOL }).catch(() => undefined);
  if (link === undefined) return undefined;
  const send = (frame: CommandStart | InputFrame): void => void link.write(`${JSON.stringify(frame)}\n`);
  send(startOf(argv, terminal));
  const { stdin, stdout, stderr } = terminal;
  const onInput = (chunk: Buffer): void => send({ input: chunk.toString("base64") });
  const onEnd = (): void => send({ inputEnded: true });
  // Otherwise the input belongs to the script that runs the command.
  if (stdin.isTTY || flags.text("args") === "-") stdin.on("data", onInput).once("end", onEnd);
  else onEnd();
  let exitCode: number | undefined;
  const splitter = new LineSplitter({
    maxBytes: MAX_LINE_BYTES,
    onLine: (line) => {
      // Only the hub that has the token of this user writes it.
      const frame = JSON.parse(line) as OutputFrame;
      if ("out" in frame) stdout.write(frame.out);
      else if ("err" in frame) stderr.write(frame.err);
      else exitCode = frame.exit;
    },
    onOversize: () => link.destroy(),
  });
  link.on("data", (chunk: Buffer) => splitter.push(chunk)).on("error", () => {});
  link.resume();
  await new Promise((resolve) => link.once("close", resolve));
  stdin.off("data", onInput).off("end", onEnd).pause();
  if (exitCode !== undefined) return exitCode;
  throw new ToolcribError("server_unavailable", "The hub ended while the command was running.", {
    hint: "A tool that it called may have run: look before you call it again.",
  });
}

function startOf(argv: readonly string[], { env, cwd, stdin, stdout, stderr }: Terminal): CommandStart {
  const shown = SHOWN_VARIABLES.flatMap((name): [string, string][] => {
    const value = env[name];
    return value === undefined ? [] : [[name, value]];
  });
  const facts = (sink: { isTTY?: boolean; columns?: number }): CommandStart["stdout"] => ({
    isTTY: sink.isTTY === true,
    ...(sink.columns === undefined ? {} : { columns: sink.columns }),
  });
  return {
    argv: [...argv],
    cwd,
    env: Object.fromEntries(shown),
    stdin: facts(stdin),
    stdout: facts(stdout),
    stderr: facts(stderr),
  };
}
