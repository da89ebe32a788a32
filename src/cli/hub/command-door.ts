/** `/command`: commands of the hub's own user that run here, on the live hub, with the input and output of their process. */
import { PassThrough, Writable } from "node:stream";
import { refuseUpgrade } from "../../doors/http/http-connections.ts";
import type { HttpRoute, HttpUpgrade } from "../../doors/http/http-exchange.ts";
import { sendError } from "../../doors/http/http-responses.ts";
import { OWN_KEY, switchProtocol } from "../../doors/mcp/bridge-door.ts";
import type { Hub } from "../../hub/hub.ts";
import { isJsonObject } from "../../model/json.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { Redactor } from "../../secrets/redactor.ts";
import { LineSplitter } from "../../upstream/stdio/line-framing.ts";
import type { Invocation } from "../command.ts";
import type { Sink } from "../output.ts";
import {
  COMMAND_PATH,
  COMMAND_PROTOCOL,
  type CommandStart,
  CommandStartSchema,
  type OutputFrame,
} from "./command-frames.ts";

interface CommandDoorOptions extends Pick<Invocation, "runCommandLine"> {
  readonly hub: Hub;
  readonly redactor: Redactor;
  readonly env: NodeJS.ProcessEnv;
}

const MAX_LINE_BYTES = 64 * 1024 * 1024;

export function commandRoute(options: CommandDoorOptions): HttpRoute {
  return {
    path: COMMAND_PATH,
    access: "admin",
    protocol: COMMAND_PROTOCOL,
    handle({ response }) {
      const error = new ToolcribError("invalid_arguments", "This address is for commands of toolcrib.");
      sendError(response, error, { status: 426, headers: { upgrade: COMMAND_PROTOCOL } });
    },
    upgrade: (upgrade) => take(upgrade, options),
  };
}

function take(upgrade: HttpUpgrade, options: CommandDoorOptions): void {
  const { socket } = upgrade;
  if (upgrade.caller.key !== OWN_KEY) {
    refuseUpgrade(upgrade, new ToolcribError("denied", "Only the token in the hub's own file runs commands."));
    return;
  }
  switchProtocol(upgrade, COMMAND_PROTOCOL);
  const send = (frame: OutputFrame): void => {
    if (socket.writable) socket.write(`${JSON.stringify(frame)}\n`);
  };
  const stdin = new PassThrough();
  const ended = new AbortController();
  let isStarted = false;
  const splitter = new LineSplitter({
    maxBytes: MAX_LINE_BYTES,
    onLine: (line) => {
      const frame = parse(line);
      if (!isStarted) {
        isStarted = true;
        const start = CommandStartSchema.safeParse(frame).data;
        if (start === undefined) return void socket.destroy();
        void run(start, { ...options, stdin, send, signal: ended.signal }).then((exit) => {
          send({ exit });
          socket.end();
        });
      } else if (isJsonObject(frame) && typeof frame["input"] === "string") {
        stdin.write(Buffer.from(frame["input"], "base64"));
      } else stdin.end();
    },
    onOversize: () => socket.destroy(),
  });
  socket.on("data", (chunk: Buffer) => splitter.push(chunk));
  socket.on("error", () => {});
  socket.once("close", () => {
    ended.abort();
    stdin.end();
  });
}

interface RunOptions extends CommandDoorOptions {
  readonly stdin: PassThrough;
  readonly send: (frame: OutputFrame) => void;
  readonly signal: AbortSignal;
}

/** Never rejects. */
function run(
  start: CommandStart,
  { hub, redactor, env, stdin, send, signal, runCommandLine }: RunOptions,
): Promise<number> {
  const { argv, cwd } = start;
  return runCommandLine(argv, {
    env: { ...env, ...start.env },
    cwd,
    // The part of a terminal that commands use.
    stdin: Object.assign(stdin, { isTTY: start.stdin.isTTY }) as unknown as NodeJS.ReadStream,
    stdout: remoteSink(start.stdout, (out) => send({ out })),
    stderr: remoteSink(start.stderr, (err) => send({ err })),
    redactor,
    attached: { hub, signal },
  });
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

/** A stream of the command's own process, seen from the hub. */
function remoteSink(facts: CommandStart["stdout"], write: (text: string) => void): Sink {
  const sink = new Writable({
    decodeStrings: false,
    write(chunk: string | Buffer, _encoding, done) {
      write(chunk.toString());
      done();
    },
  });
  return Object.assign(sink, facts);
}
