import { truncateMiddle } from "../model/content.ts";
import { asToolcribError, ToolcribError } from "../model/errors.ts";
import type { ToolDefinition } from "../model/protocol.ts";
import type { ServerSpec } from "../model/server-spec.ts";
import type { ServerInfo, ServerState, TransportKind } from "../model/server-state.ts";
import type { Use } from "../model/source.ts";
import { loginNeededError } from "../secrets/oauth/login-errors.ts";
import { isUnauthorized } from "./handshake.ts";
import { rpcOf } from "./rpc-error.ts";
import { notSent } from "./wire.ts";

/** Why a call cannot even be tried in this state. A missing login is reported in our own words, which may be shown to anyone. */
export function unavailableError({ id, auth }: ServerInfo, state: ServerState, user?: string): ToolcribError {
  if (auth?.state === "login_needed") return loginNeededError({ server: id, user });
  const hint = ("hint" in state ? state.hint : undefined) ?? STATE_HINTS[state.kind];
  const reason = "reason" in state ? `: ${state.reason}` : "";
  const message = `Server ${JSON.stringify(id)} is ${state.kind}${reason}`;
  const problem = "problem" in state ? state.problem : undefined;
  return notSent("server_unavailable", message, hint, {
    ...{ server: id, state: state.kind },
    ...(problem === undefined ? {} : { problem }),
  });
}

/** For a call that came after the server was taken out of service. */
export function removedError(id: string): ToolcribError {
  const message = `Server ${JSON.stringify(id)} was removed or replaced.`;
  return notSent("server_unavailable", message, "List the tools again.", { server: id });
}

const STATE_HINTS: Partial<Record<ServerState["kind"], string>> = {
  disabled: "Enable it in the config.",
  restarting: "It is being restarted; try again shortly.",
  failed: "Run `toolcrib doctor` for details, and connect it again when it is fixed.",
};

/**
 * A failed call as its caller sees it. What the server itself answered stays as it came; what Toolcrib says of the
 * server gets the server's name and loses secrets, because it may quote the server's stderr.
 */
export function maskError(thrown: unknown, id: string, mask: (text: string) => string): ToolcribError {
  const error = asToolcribError(thrown);
  if (rpcOf(error) !== undefined) return error;
  const { code, details } = error;
  const isNamed = code !== "server_unavailable" || details?.["server"] === id;
  const message = isNamed ? error.message : `Server ${JSON.stringify(id)}: ${error.message}`;
  const hint = error.hint === undefined ? undefined : mask(error.hint);
  return new ToolcribError(code, mask(message), { hint, details, cause: error });
}

interface FailedCall {
  readonly use: Use;
  readonly tool: ToolDefinition | undefined;
  readonly transport: TransportKind;
  readonly restart: ServerSpec["restart"];
}

interface Recovery {
  readonly reconnect: boolean;
  readonly retry: boolean;
}

const NO_RECOVERY: Recovery = { reconnect: false, retry: false };

/** Whether a failed call needs a new link, and whether it may run again. */
export function recoveryFor(error: unknown, { use, tool, transport, restart }: FailedCall): Recovery {
  if (!(error instanceof ToolcribError)) return NO_RECOVERY;
  if (error.code === "timeout") return { reconnect: restart !== false && restart.onTimeout, retry: false };
  // A server that answers 404 for the session did not run the call: the wire then says that it was not sent.
  const safe = error.details?.["sent"] === false || isRepeatable(use, tool);
  if (isSessionLost(error)) return { reconnect: true, retry: safe };
  const lostOnTheWay = error.code === "server_unavailable" && rpcOf(error) === undefined;
  return { reconnect: false, retry: transport !== "stdio" && lostOnTheWay && safe };
}

/** The server is there, but does not know our HTTP session any more. */
export function isSessionLost(error: unknown): boolean {
  return error instanceof ToolcribError && error.details?.["sessionLost"] === true;
}

/** Whether nothing reaches the server any more, so that it is worth finding out how it is. */
export function isUnreachable(error: unknown): boolean {
  return error instanceof ToolcribError && error.code === "server_unavailable" && error.details?.["sent"] === false;
}

/** Whether a use may be run twice without harm, according to the server. */
function isRepeatable(use: Use, tool: ToolDefinition | undefined): boolean {
  if (use.kind !== "tool" || use.task !== undefined) return true;
  const hints = tool?.annotations;
  return hints?.readOnlyHint === true || hints?.idempotentHint === true;
}

export interface Failure {
  readonly reason: string;
  readonly hint?: string;
  /** The cause as a code for programs, if it is a known one. */
  readonly problem?: string;
  /** False where another attempt would fail the same way, such as a program that is not installed. */
  readonly heals: boolean;
}

const NOT_STARTABLE = new Set(["ENOENT", "EACCES", "EPERM", "ENOEXEC", "E2BIG"]);
const CERTIFICATE = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|UNABLE_TO_GET_ISSUER|ERR_TLS/;
/** HTTP answers that mean "come back later" rather than "not here". */
const TRANSIENT_STATUS = new Set([408, 421, 425, 429]);
/** A server words its answer to the handshake, and a person reads the reason: in the log, in lists, on the page. */
const MAX_REASON_BYTES = 8 * 1024;

/** Of a text that may quote a server at any length. */
export function readablePart(text: string): string {
  return truncateMiddle(text, MAX_REASON_BYTES, "\n[... cut here ...]\n");
}

/** @param mask Takes secrets out of what is shown: messages may quote a server. */
export function describeFailure(thrown: unknown, mask: (text: string) => string): Failure {
  const error = asToolcribError(thrown);
  const failure = describeError(error);
  const { reason, hint } = failure;
  const problem = error.details?.["problem"];
  return {
    ...failure,
    reason: readablePart(mask(reason)),
    hint: hint === undefined ? undefined : mask(hint),
    problem: typeof problem === "string" ? problem : undefined,
  };
}

/** Why a connection failed, in words a person can act on, and whether waiting can help. */
function describeError(error: ToolcribError): Failure {
  const { hint } = error;
  if (isUnauthorized(error)) {
    return { reason: error.message, hint: hint ?? "Set `auth` or `headers` of this server.", heals: false };
  }
  if (isPermanent(error)) return { reason: error.message, hint, heals: false };
  if (error.code === "timeout") {
    const fallback =
      "Start it by hand to see what it waits for, and whether it prints anything but messages of the protocol to stdout. If it is slow, raise its `timeout`.";
    return { reason: `The server did not answer: ${error.message}`, hint: fallback, heals: true };
  }
  return describeAnswer(error) ?? { reason: error.message, hint, heals: true };
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
  if (isTransient) return { reason: error.message, hint: error.hint, heals: true };
  const reason = `Not an MCP server at this address: ${error.message}`;
  return { reason, hint: error.hint ?? "Check the url; many servers answer at /mcp or /sse.", heals: false };
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
