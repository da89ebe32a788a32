/** Why a connection failed, in words a person can act on, and whether waiting can help. */
import { asToolcribError, ToolcribError } from "../model/errors.ts";
import { isUnauthorized } from "./era-detection.ts";
import { rpcOf } from "./rpc-error.ts";

export interface Failure {
  readonly reason: string;
  readonly hint?: string;
  /** False where another attempt would fail the same way, such as a program that is not installed. */
  readonly heals: boolean;
}

const NOT_STARTABLE = new Set(["ENOENT", "EACCES", "EPERM", "ENOEXEC", "E2BIG"]);
const CERTIFICATE = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|UNABLE_TO_GET_ISSUER|ERR_TLS/;
/** HTTP answers that mean "come back later" rather than "not here". */
const TRANSIENT_STATUS = new Set([408, 421, 425, 429]);

/** @param mask Takes secrets out of what is shown: messages may quote a server. */
export function describeFailure(thrown: unknown, mask: (text: string) => string): Failure {
  const failure = describe(asToolcribError(thrown));
  const { hint } = failure;
  return { ...failure, reason: mask(failure.reason), ...(hint === undefined ? {} : { hint: mask(hint) }) };
}

function describe(error: ToolcribError): Failure {
  const hint = error.hint;
  if (isUnauthorized(error)) {
    return { reason: error.message, hint: hint ?? "Set `auth` or `headers` of this server.", heals: false };
  }
  if (isPermanent(error)) return { reason: error.message, ...hintOf(error), heals: false };
  if (error.code === "timeout") {
    const fallback = "Start it by hand to see what it waits for, or raise its `timeout`.";
    return { reason: `The server did not answer: ${error.message}`, hint: fallback, heals: true };
  }
  return describeAnswer(error) ?? { reason: error.message, ...hintOf(error), heals: true };
}

/** A wrong config, a program that cannot be started, a certificate, a web page instead of an MCP server. */
function isPermanent(error: ToolcribError): boolean {
  const details = error.details ?? {};
  if (error.code === "invalid_config" || details["permanent"] === true || "contentType" in details) return true;
  return systemCodes(error).some((code) => NOT_STARTABLE.has(code) || CERTIFICATE.test(code));
}

/** The server was there and answered the handshake with something that no MCP server of a known kind would. */
function describeAnswer(error: ToolcribError): Failure | undefined {
  const status = error.details?.["status"];
  const isTransient = typeof status === "number" && (status >= 500 || TRANSIENT_STATUS.has(status));
  const rpc = rpcOf(error);
  if (rpc !== undefined) {
    const reason = `The server answered the handshake with an error: ${error.message} (${rpc.code})`;
    return { reason, hint: "Check that this is an MCP server, and its arguments.", heals: isTransient };
  }
  if (typeof status !== "number") return undefined;
  if (isTransient) return { reason: error.message, ...hintOf(error), heals: true };
  const reason = `Not an MCP server at this address: ${error.message}`;
  return { reason, hint: error.hint ?? "Check the url; many servers answer at /mcp or /sse.", heals: false };
}

function hintOf(error: ToolcribError): { hint?: string } {
  return error.hint === undefined ? {} : { hint: error.hint };
}

/** Codes such as ENOENT: in the details, or in the errors that caused this one. */
function systemCodes(error: ToolcribError): string[] {
  const codes: string[] = [];
  for (let at: unknown = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth++) {
    const code: unknown = at instanceof ToolcribError ? at.details?.["reason"] : "code" in at ? at.code : undefined;
    if (typeof code === "string") codes.push(code);
  }
  return codes;
}
