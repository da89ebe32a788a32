/** Puts an answer on the wire, with the faults that its turn asks for. */
import type { ServerResponse } from "node:http";
import type { Clock } from "../../model/clock.ts";
import type { Answer } from "./answer.ts";
import type { Frame, Protocol } from "./protocol.ts";
import type { AnswerTurn } from "./turn.ts";

const FAILURE = "The scenario breaks off here.";

export interface AnswerParts {
  readonly protocol: Protocol;
  readonly turn: AnswerTurn;
  readonly answer: Answer;
  readonly stream: boolean;
  readonly clock: Clock;
}

/** Resolves when everything is sent, the connection was broken on purpose, or the client is gone. */
export async function sendAnswer(response: ServerResponse, parts: AnswerParts): Promise<void> {
  const { turn } = parts;
  if (turn.dropAfter === "request") response.destroy();
  else if (parts.stream) await sendStream(response, parts);
  else await sendWhole(response, parts);
}

async function sendStream(response: ServerResponse, { protocol, turn, answer, clock }: AnswerParts): Promise<void> {
  response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache" });
  let sent = 0;
  for (const frame of protocol.frames(answer)) {
    if (frame.piece === true) {
      if (await interrupted(response, protocol, turn, sent)) return;
      await pause(response, clock, turn.delayMs);
    }
    if (response.destroyed) return;
    await write(response, frame);
    if (frame.piece !== true) continue;
    sent++;
    if (await interrupted(response, protocol, turn, sent)) return;
  }
  response.end();
}

/** Whether the turn ends here, before it is complete. */
async function interrupted(
  response: ServerResponse,
  protocol: Protocol,
  turn: AnswerTurn,
  sent: number,
): Promise<boolean> {
  if (turn.dropAfter === sent) {
    response.destroy();
    return true;
  }
  if (turn.stallAfter === sent) {
    await closed(response);
    return true;
  }
  if (turn.failAfter === sent) {
    await write(response, protocol.failure(FAILURE));
    response.end();
    return true;
  }
  return false;
}

/** Nothing of an answer without a stream arrives before all of it does. */
async function sendWhole(response: ServerResponse, { protocol, turn, answer, clock }: AnswerParts): Promise<void> {
  if (turn.dropAfter !== undefined) return void response.destroy();
  if (turn.stallAfter !== undefined) return closed(response);
  await pause(response, clock, turn.delayMs);
  if (turn.failAfter !== undefined) sendJson(response, 500, protocol.error({ status: 500, message: FAILURE }));
  else sendJson(response, 200, protocol.whole(answer));
}

export function sendJson(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): void {
  if (response.destroyed) return;
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify(body));
}

/** Waits until it is in the kernel's hands, so that breaking the connection right after does not take it along. */
async function write(response: ServerResponse, { event, data }: Frame): Promise<void> {
  const text = typeof data === "string" ? data : JSON.stringify(data);
  const line = event === undefined ? "" : `event: ${event}\n`;
  await new Promise<void>((resolve) => {
    response.write(`${line}data: ${text}\n\n`, () => resolve());
  });
}

async function pause(response: ServerResponse, clock: Clock, ms: number | undefined): Promise<void> {
  if (ms === undefined || ms <= 0) return;
  await new Promise<void>((resolve) => {
    const onClose = (): void => {
      cancel();
      resolve();
    };
    const cancel = clock.after(ms, () => {
      response.off("close", onClose);
      resolve();
    });
    response.once("close", onClose);
  });
}

async function closed(response: ServerResponse): Promise<void> {
  if (response.destroyed) return;
  await new Promise<void>((resolve) => response.once("close", () => resolve()));
}
