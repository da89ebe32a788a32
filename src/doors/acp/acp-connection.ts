/** One client on two streams: the SDK frames messages and matches answers, `AcpDoor` does the rest. */
import type { Readable, Writable } from "node:stream";
import { agent, type AgentApp, methods, ndJsonStream } from "@agentclientprotocol/sdk/unstable";
import { ToolcribError } from "../../model/errors.ts";
import { AcpDoor, parseExistingSessionParams, parseSessionParams } from "./acp-door.ts";
import type { AcpDoorOptions } from "./acp-options.ts";
import { McpOverAcp } from "./mcp-over-acp.ts";
import { requestError } from "./request-error.ts";

/** A prompt can have several images. */
const MAX_MESSAGE_BYTES = 64 * 1024 * 1024;

export async function connectAcp(options: AcpDoorOptions): Promise<void> {
  const { input, output, signal, log, maxMessageBytes = MAX_MESSAGE_BYTES } = options;
  const mcp = new McpOverAcp();
  const door = new AcpDoor(options, mcp);
  let refused: ToolcribError | undefined;
  const readable = webInput(input, maxMessageBytes, () => {
    const hint = "Leave out large images or files, or name them by path.";
    const text = `The client sent a message of more than ${maxMessageBytes} bytes.`;
    refused = new ToolcribError("too_large", text, { hint });
    log(refused.message);
    const { code, message, data } = requestError(refused);
    output.write(`${JSON.stringify({ jsonrpc: "2.0", id: null, error: { code, message, data } })}\n`);
    return refused;
  });
  // One more than the limit, so that the reason is reported here.
  const stream = ndJsonStream(webOutput(output), readable, { maxMessageBytes: maxMessageBytes + 1 });
  const connection = agentApp(door, mcp).connect(stream);
  door.connected(connection.client);
  const end = (): void => connection.close();
  signal?.addEventListener("abort", end, { once: true });
  if (signal?.aborted === true) end();
  output.once("close", end);
  await connection.closed;
  signal?.removeEventListener("abort", end);
  output.off("close", end);
  await door.close();
  if (refused !== undefined) throw refused;
}

/** Node's own adapters destroy the underlying streams, which belong to the caller. */
function webInput(input: Readable, longestLine: number, onTooLong: () => Error): ReadableStream<Uint8Array> {
  let stop = (): void => {};
  /** Bytes of the line that has not ended. */
  let length = 0;
  return new ReadableStream<Uint8Array>({
    start(controller) {
      const onData = (given: Buffer | string): void => {
        const chunk = Buffer.from(given);
        if (isTooLong(chunk)) {
          stop();
          controller.error(onTooLong());
        } else {
          controller.enqueue(chunk);
        }
      };
      const onEnd = (): void => {
        stop();
        controller.close();
      };
      stop = () => {
        input.off("data", onData).off("end", onEnd).off("close", onEnd).off("error", onEnd);
        input.pause();
      };
      input.on("data", onData).once("end", onEnd).once("close", onEnd).once("error", onEnd);
    },
    cancel: () => stop(),
  });

  function isTooLong(chunk: Buffer): boolean {
    let from = 0;
    for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, from)) {
      if (length + at - from > longestLine) return true;
      length = 0;
      from = at + 1;
    }
    length += chunk.length - from;
    return length > longestLine;
  }
}

function webOutput(output: Writable): WritableStream<Uint8Array> {
  // A client that has disconnected shows as a failed write.
  output.on("error", () => {});
  return new WritableStream<Uint8Array>({
    write: (chunk) =>
      new Promise((resolve, reject) => output.write(chunk, (error) => (error ? reject(error) : resolve()))),
  });
}

/** Maps the methods of ACP to the door. */
function agentApp(door: AcpDoor, mcp: McpOverAcp): AgentApp {
  const { initialize, authenticate, session } = methods.agent;
  const existing = parseWith(parseExistingSessionParams);
  const app = agent({ name: "toolcrib" });
  app.onRequest(initialize, respond(door.initialize.bind(door)));
  app.onRequest(authenticate, respond(door.authenticate.bind(door)));
  app.onRequest(session.new, parseWith(parseSessionParams), respond(door.newSession.bind(door)));
  app.onRequest(session.load, existing, respond(door.loadSession.bind(door)));
  app.onRequest(session.resume, existing, respond(door.resumeSession.bind(door)));
  app.onRequest(session.list, respond(door.listSessions.bind(door)));
  app.onRequest(session.close, respond(door.closeSession.bind(door)));
  app.onRequest(session.delete, respond(door.deleteSession.bind(door)));
  app.onRequest(session.setMode, respond(door.setMode.bind(door)));
  app.onRequest(session.setConfigOption, respond(door.setConfigOption.bind(door)));
  app.onRequest(session.prompt, respond(door.prompt.bind(door)));
  // After `prompt`, so that a cancel that follows it at once finds it running.
  app.onNotification(session.cancel, ({ params }) => door.cancel(params));
  return app.onNotification(methods.agent.mcp.message, mcp.caller.handleNotification);
}

interface Request<Params> {
  readonly params: Params;
  readonly signal: AbortSignal;
}

function respond<Params, Response>(
  answer: (params: Params, signal: AbortSignal) => Promise<Response>,
): (request: Request<Params>) => Promise<Response> {
  return async ({ params, signal }) => {
    try {
      return await answer(params, signal);
    } catch (error) {
      throw requestError(error);
    }
  };
}

function parseWith<Params>(parser: (params: unknown) => Params): (params: unknown) => Params {
  return (params) => {
    try {
      return parser(params);
    } catch (error) {
      throw requestError(error);
    }
  };
}
