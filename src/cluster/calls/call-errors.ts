/** The errors of calls between nodes, and how they travel. */
import { asToolcribError, ERROR_TABLE, type ErrorCode, type ErrorObject, ToolcribError } from "../../model/errors.ts";
import { isJsonObject } from "../../model/json.ts";

/** Nobody can have begun it: it may be sent again. */
export function notSent(message: string, hint?: string): ToolcribError {
  return new ToolcribError("server_unavailable", message, { hint, details: { sent: false } });
}

/** Whether it ran is not known: it must not be sent again. */
export function inDoubt(why: string): ToolcribError {
  return new ToolcribError("server_unavailable", `${why} Whether the call ran is not known.`, {
    hint: "See what it did before you call again.",
  });
}

export function cancelled(): ToolcribError {
  return new ToolcribError("cancelled", "The caller gave up.");
}

export function errorToSend(thrown: unknown): ErrorObject {
  return asToolcribError(thrown).toObject();
}

export function errorThatCame(value: unknown): ToolcribError {
  if (!isJsonObject(value)) return new ToolcribError("internal", "The other node failed without saying why.");
  const { code, message, hint, details } = value;
  return new ToolcribError(isErrorCode(code) ? code : "internal", typeof message === "string" ? message : "", {
    hint: typeof hint === "string" ? hint : undefined,
    details: isJsonObject(details) ? details : undefined,
  });
}

function isErrorCode(value: unknown): value is ErrorCode {
  return typeof value === "string" && Object.hasOwn(ERROR_TABLE, value);
}
