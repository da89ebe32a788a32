import type { IncomingMessage } from "node:http";
import { ToolcribError } from "../../model/errors.ts";

/** How much of a body that is too large is read and thrown away, so that its sender gets to read the answer. */
const LINGER_BYTES = 32 * 1024 * 1024;

/** The whole body, or a rejection with ToolcribError. Must be called before anybody else reads the request. */
export function readBody(request: IncomingMessage, limit: number): Promise<Buffer> {
  const announced = Number(request.headers["content-length"] ?? 0);
  const encoding = request.headers["content-encoding"];
  if (encoding !== undefined && encoding.toLowerCase() !== "identity") {
    return Promise.reject(new ToolcribError("invalid_arguments", "A compressed body is not read. Send it as it is."));
  }
  if (announced > limit) {
    discard(request, LINGER_BYTES);
    return Promise.reject(tooLarge(limit));
  }
  return new Promise((resolve, reject) => {
    // Nothing more is told of such a request, even if it had come whole.
    if (request.destroyed) {
      reject(cut());
      return;
    }
    const chunks: Buffer[] = [];
    let size = 0;
    let isSettled = false;
    const onData = (chunk: Buffer): void => {
      size += chunk.length;
      if (size <= limit) {
        chunks.push(chunk);
        return;
      }
      isSettled = true;
      request.off("data", onData);
      discard(request, LINGER_BYTES);
      reject(tooLarge(limit));
    };
    // The listeners go with the request: taking them off again would cost as much as the rest.
    request.on("data", onData);
    request.on("end", () => {
      if (isSettled) return;
      isSettled = true;
      const [only] = chunks;
      resolve(chunks.length === 1 && only !== undefined ? only : Buffer.concat(chunks, size));
      chunks.length = 0;
    });
    request.on("close", () => {
      if (!isSettled) reject(cut());
    });
    // "close" follows; without a listener the error would be nobody's.
    request.on("error", ignore);
  });
}

/** Reads on without keeping anything; who still goes on then is cut off. The time is bounded by that for a request. */
function discard(request: IncomingMessage, most: number): void {
  let left = most;
  request.on("data", (chunk: Buffer) => {
    left -= chunk.length;
    if (left < 0) request.destroy();
  });
  request.on("error", ignore);
}

function ignore(): void {}

function tooLarge(limit: number): ToolcribError {
  return new ToolcribError("too_large", `The body of the request is larger than ${limit} bytes.`, {
    hint: "http.limits.bodyBytes sets the limit.",
  });
}

function cut(): ToolcribError {
  return new ToolcribError("cancelled", "The connection ended before the whole request had come.");
}
