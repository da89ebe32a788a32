/** Errors of Toolcrib as ACP errors. */
import { RequestError } from "@agentclientprotocol/sdk/unstable";
import { asToolcribError, ERROR_TABLE, type ErrorObject } from "../../model/errors.ts";

/** Codes that ACP defines; all others are from the error table. */
const AUTH_REQUIRED = -32000;
const RESOURCE_NOT_FOUND = -32002;
const REQUEST_CANCELLED = -32800;

export function requestError(thrown: unknown): RequestError {
  if (thrown instanceof RequestError) return thrown;
  const error = asToolcribError(thrown).toObject();
  // Clients show the message; few show more than that.
  return new RequestError(codeOf(error), errorText(error), error);
}

export function errorText({ message, hint }: ErrorObject): string {
  return hint === undefined ? message : `${message} ${hint}`;
}

function codeOf({ code }: ErrorObject): number {
  switch (code) {
    case "unauthorized":
      return AUTH_REQUIRED;
    case "not_found":
      return RESOURCE_NOT_FOUND;
    case "cancelled":
      return REQUEST_CANCELLED;
    default:
      return ERROR_TABLE[code].rpc;
  }
}

export function sessionNotFound(sessionId: string): RequestError {
  return new RequestError(RESOURCE_NOT_FOUND, `There is no session ${sessionId}.`, { sessionId });
}
