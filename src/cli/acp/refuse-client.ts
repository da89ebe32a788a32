/** Tells a client why there is no agent: the answer to its first request. On stderr alone it would be lost in most editors. */
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { ERROR_TABLE, type ErrorObject } from "../../model/errors.ts";
import { isJsonObject } from "../../model/json.ts";

/** Resolves when a request was answered, the input has ended, or the signal aborted. */
export async function refuseClient(
  input: Readable,
  output: Writable,
  error: ErrorObject,
  signal: AbortSignal,
): Promise<void> {
  const lines = createInterface({ input, crlfDelay: Infinity });
  const stop = (): void => lines.close();
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  try {
    for await (const line of lines) {
      const id = requestId(line);
      if (id === undefined) continue;
      const { code, message, hint, details } = error;
      const text = hint === undefined ? message : `${message} ${hint}`;
      const answer = { code: ERROR_TABLE[code].rpc, message: text, data: { code, message, hint, details } };
      output.write(`${JSON.stringify({ jsonrpc: "2.0", id, error: answer })}\n`);
      return;
    }
  } finally {
    signal.removeEventListener("abort", stop);
    lines.close();
  }
}

function requestId(line: string): string | number | undefined {
  let message: unknown;
  try {
    message = JSON.parse(line);
  } catch {
    return undefined;
  }
  if (!isJsonObject(message) || typeof message["method"] !== "string") return undefined;
  const { id } = message;
  return typeof id === "string" || typeof id === "number" ? id : undefined;
}
