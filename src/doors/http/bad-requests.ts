/** Answers on sockets whose request could not be read to its end, and ends those that nobody uses any more. */
import type { Server } from "node:http";
import type { Duplex } from "node:stream";
import type { Socket } from "node:net";
import type { ErrorCode } from "../../model/errors.ts";
import { rawError } from "./answers.ts";
import type { LastAnswers } from "./last-answers.ts";

interface Refusal {
  readonly status: number;
  readonly reason: string;
  readonly code: ErrorCode;
  readonly message: string;
}

const MALFORMED: Refusal = {
  status: 400,
  reason: "Bad Request",
  code: "invalid_arguments",
  message: "The request is no valid HTTP.",
};

const REFUSALS: Readonly<Record<string, Refusal>> = {
  HPE_HEADER_OVERFLOW: {
    status: 431,
    reason: "Request Header Fields Too Large",
    code: "too_large",
    message: "The headers of the request are too large (http.limits.headerBytes).",
  },
  HPE_CHUNK_EXTENSIONS_OVERFLOW: {
    status: 413,
    reason: "Payload Too Large",
    code: "too_large",
    message: "The chunk extensions of the request are too large.",
  },
  ERR_HTTP_REQUEST_TIMEOUT: {
    status: 408,
    reason: "Request Timeout",
    code: "timeout",
    message: "The request took too long to arrive (http.limits.requestTimeoutMs).",
  },
};

/**
 * @param answers What each socket waits for; it is what tells an open event stream from a socket that is only
 * being held.
 */
export function refuseBadRequests(server: Server, answers: LastAnswers): void {
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Duplex) => {
    if (error.code === "ECONNRESET" || !socket.writable || answers.of(socket)?.headersSent === true) {
      socket.destroy();
      return;
    }
    const { status, reason, code, message } = REFUSALS[error.code ?? ""] ?? MALFORMED;
    socket.end(rawError(status, reason, { code, message }));
  });
  // Nothing was read or written for a while. A call that runs and a stream with nothing to say are left alone; a client
  // that takes nothing of what is written to it is not, nor is a socket without a request.
  server.on("timeout", (socket: Socket) => {
    if (answers.of(socket) === undefined || socket.writableLength > 0) socket.destroy();
  });
}
