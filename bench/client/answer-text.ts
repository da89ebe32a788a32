/** An answer's body as the JSON-RPC answer that it carries, be it JSON or an event stream. */
import type { IncomingMessage } from "node:http";
import type { Answer } from "./protocol.ts";

/** @param onStray Gets every answer after the first: a stream that carries two has doubled one. */
export function readAnswer(response: IncomingMessage, onStray?: (answer: Answer) => void): Promise<Answer | undefined> {
  const isStream = response.headers["content-type"]?.startsWith("text/event-stream") === true;
  return isStream ? readFromEvents(response, onStray) : readJson(response);
}

function readJson(response: IncomingMessage): Promise<Answer | undefined> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    response.on("data", (chunk: Buffer) => chunks.push(chunk));
    response.on("error", reject);
    response.on("close", () => response.complete || reject(new Error("The answer was cut off.")));
    response.on("end", () => {
      const text = Buffer.concat(chunks).toString();
      const status = response.statusCode ?? 0;
      try {
        if (text !== "") return resolve(JSON.parse(text));
        if (status < 300) return resolve(undefined);
      } catch {
        // Then the status says more than the text.
      }
      reject(new Error(`HTTP ${status}: ${text.slice(0, 200)}`));
    });
  });
}

/** The first message with a result or an error; what comes before it is progress. */
function readFromEvents(response: IncomingMessage, onStray?: (answer: Answer) => void): Promise<Answer> {
  return new Promise((resolve, reject) => {
    let answered = false;
    const events = new EventText((data) => {
      const message: Answer = JSON.parse(data);
      if (message.result === undefined && message.error === undefined) return;
      if (answered) onStray?.(message);
      answered = true;
      resolve(message);
    });
    response.setEncoding("utf8").on("data", (text: string) => events.push(text));
    response.on("error", reject);
    response.on("close", () => answered || reject(new Error("The stream ended without an answer.")));
  });
}

/** Splits an event stream into its events. Knows what servers send, and not all that the format allows. */
export class EventText {
  readonly #onEvent: (data: string, type: string) => void;
  #pieces: string[] = [];

  constructor(onEvent: (data: string, type: string) => void) {
    this.#onEvent = onEvent;
  }

  push(text: string): void {
    this.#pieces.push(text);
    // The empty line may come in two chunks, so the end of the last piece is looked at as well.
    if (!text.includes("\n")) return;
    const blocks = this.#pieces.join("").split(/\r?\n\r?\n/);
    this.#pieces = [blocks.pop() ?? ""];
    for (const block of blocks) this.#read(block);
  }

  #read(block: string): void {
    let [type, data] = ["message", ""];
    for (const line of block.split(/\r?\n/)) {
      if (line.startsWith("data:")) data += line.slice(line.startsWith("data: ") ? 6 : 5);
      else if (line.startsWith("event:")) type = line.slice(6).trim();
    }
    if (data !== "") this.#onEvent(data, type);
  }
}
