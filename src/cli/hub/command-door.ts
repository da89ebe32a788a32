/**
 * `/command`: commands of other processes that run here, on the live hub, with the input and output of their process. Those of
 * the hub's own user are known by the token in the hub's file; all others have the rights of their own token.
 */
import { homedir } from "node:os";
import { PassThrough, Writable } from "node:stream";
import { InFlight } from "../../base/async.ts";
import { refuseUpgrade } from "../../doors/http/http-connections.ts";
import type { HttpExchange, HttpRoute, HttpUpgrade } from "../../doors/http/http-exchange.ts";
import { sendError } from "../../doors/http/http-responses.ts";
import { missingScope } from "../../doors/http/http-access.ts";
import { OWN_KEY, ownUserCaller, switchProtocol } from "../../doors/mcp/bridge-door.ts";
import type { Hub } from "../../hub/hub.ts";
import { VERSION_HEADER } from "../../model/bridge.ts";
import { isJsonObject } from "../../model/json.ts";
import type { Caller } from "../../model/caller.ts";
import { ToolcribError } from "../../model/errors.ts";
import { VERSION } from "../../model/version.ts";
import type { Redactor } from "../../secrets/redactor.ts";
import type { Session } from "../../sessions/session.ts";
import { LineSplitter } from "../../upstream/stdio/line-framing.ts";
import type { AttachedHub, Invocation, RemoteFiles } from "../command.ts";
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
  /** The session of a caller with a token that outlives its commands. */
  readonly sessionOf: (caller: Caller) => Session;
  /** Whether `http.auth` is set. */
  readonly needsAuth: () => boolean;
  /** Ends the hub as a signal would. */
  readonly endHub?: (() => void) | undefined;
}

const MAX_LINE_BYTES = 64 * 1024 * 1024;
const QUIET_MS = 15_000;

export class CommandDoor {
  readonly #options: CommandDoorOptions;
  /** Commands in progress. */
  readonly running = new InFlight();

  constructor(options: CommandDoorOptions) {
    this.#options = options;
  }

  readonly route: HttpRoute = {
    path: COMMAND_PATH,
    access: "any",
    protocol: COMMAND_PROTOCOL,
    handle: (exchange) => this.#handle(exchange),
    upgrade: (upgrade) => this.#take(upgrade),
  };

  async #handle(exchange: HttpExchange): Promise<void> {
    const { request, response } = exchange;
    if (request.method === "POST") return this.#post(exchange);
    if (request.method === "DELETE") return this.#end(exchange);
    const error = new ToolcribError("invalid_arguments", "This address is for commands of toolcrib.");
    sendError(response, error, { status: 426, headers: { upgrade: COMMAND_PROTOCOL } });
  }

  /** Signals would end a hub on Windows without its calls in progress. */
  #end({ response, caller }: HttpExchange): void {
    const { endHub } = this.#options;
    if (caller.key !== OWN_KEY) throw new ToolcribError("denied", "Only the token in the hub's own file ends the hub.");
    if (endHub === undefined) throw new ToolcribError("conflict", "This hub is ended where it was started.");
    response.writeHead(202, { "content-length": 0 }).end();
    endHub();
  }

  async #post(exchange: HttpExchange): Promise<void> {
    const { request, response, caller } = exchange;
    // A page of another site cannot send this type without being asked first.
    if (!/^application\/json\b/i.test(request.headers["content-type"] ?? "")) {
      throw new ToolcribError("invalid_arguments", "A command is sent as application/json.");
    }
    const start = CommandStartSchema.safeParse(parse((await exchange.readBody()).toString("utf8"))).data;
    if (start === undefined) throw new ToolcribError("invalid_arguments", "This is not a command of this version.");
    if (!caller.scopes.has(start.scope)) throw missingScope(start.scope);
    response.writeHead(200, {
      "content-type": "application/x-ndjson",
      "x-accel-buffering": "no",
      [VERSION_HEADER]: VERSION,
    });
    response.flushHeaders();
    const send = (frame: OutputFrame): void => void response.write(`${JSON.stringify(frame)}\n`);
    const quiet = setInterval(() => response.write("\n"), QUIET_MS).unref();
    const left = new AbortController();
    response.once("close", () => left.abort());
    const stdin = new PassThrough();
    stdin.end(Buffer.from(start.input ?? "", "base64"));
    const files: RemoteFiles = {
      read: (path) => {
        const sent = start.files !== undefined && Object.hasOwn(start.files, path) ? start.files[path] : undefined;
        return sent === undefined ? undefined : Buffer.from(sent, "base64");
      },
      save: (parts) =>
        send({ save: parts.map(({ bytes, ...part }) => ({ ...part, bytes: bytes.toString("base64") })) }),
    };
    // A terminal on another machine answers no questions: whether a call is approved is not for its caller to say.
    const far = { ...start, cwd: homedir(), stdin: { isTTY: false } };
    const peer = { transport: "http", pid: start.pid, cwd: start.cwd };
    const parent = (): Session => this.#options.sessionOf(caller);
    const exit = await this.#run(far, stdin, send, { caller, peer, parent, signal: left.signal, files });
    clearInterval(quiet);
    send({ exit });
    response.end();
  }

  #take(upgrade: HttpUpgrade): void {
    const { socket } = upgrade;
    if (upgrade.caller.key !== OWN_KEY) {
      refuseUpgrade(
        upgrade,
        new ToolcribError("denied", "Only the token in the hub's own file opens this connection."),
      );
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
          void this.#begin(frame, stdin, send, ended.signal).then(() => socket.end());
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

  async #begin(
    frame: unknown,
    stdin: PassThrough,
    send: (frame: OutputFrame) => void,
    signal: AbortSignal,
  ): Promise<void> {
    const start = CommandStartSchema.safeParse(frame).data;
    if (start === undefined) return;
    const needsAuth = this.#options.needsAuth();
    const caller = ownUserCaller("command", needsAuth);
    if (!caller.scopes.has(start.scope)) {
      send({ needs: start.scope });
      return;
    }
    const { pid, cwd } = start;
    const peer = { transport: "local", pid, cwd };
    // Whoever only may call does not approve: that there is a terminal is the process's own word.
    const asked = needsAuth ? { ...start, stdin: { isTTY: false } } : start;
    send({ exit: await this.#run(asked, stdin, send, { caller, peer, signal }) });
  }

  /** Never rejects. */
  #run(
    start: CommandStart,
    stdin: PassThrough,
    send: (frame: OutputFrame) => void,
    attached: Omit<AttachedHub, "hub">,
  ): Promise<number> {
    const { hub, redactor, env, runCommandLine } = this.#options;
    return this.running.track(() =>
      runCommandLine(start.argv, {
        env: { ...env, ...start.env },
        cwd: start.cwd,
        // The part of a terminal that commands use.
        stdin: Object.assign(stdin, { isTTY: start.stdin.isTTY }) as unknown as NodeJS.ReadStream,
        stdout: remoteSink(start.stdout, (out) => send({ out })),
        stderr: remoteSink(start.stderr, (err) => send({ err })),
        redactor,
        attached: { hub, ...attached },
      }),
    );
  }
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
