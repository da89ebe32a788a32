/** A call that failed, as its caller may hear of it: servers word errors, and what they write to stderr is quoted in some. */
import { inspectShortResult } from "../guard/inspect-result.ts";
import { resultBytes } from "../guard/result-size.ts";
import { truncateMiddle } from "../model/content.ts";
import type { ErrorObject, ToolcribError } from "../model/errors.ts";
import { isJsonObject } from "../model/json.ts";
import { isLocalSource } from "../model/local-source.ts";
import type { Outcome } from "../model/outcome.ts";
import { type CallInProgress, type CallOptions, type CallPath, publicNameOf } from "./call-path.ts";
import { taint } from "./taint.ts";
import { untrustedOrigin } from "./untrusted-origin.ts";

/** An error is read at once and goes to a model as it is: a document has no place in it. */
const LONGEST_MESSAGE = 16 * 1024;
const MOST_DETAILS = 64 * 1024;

/**
 * An error that a server worded is as untrusted as a result: it is scanned, and wrapped for agents, like one. Secrets are
 * masked in every error, whoever worded it.
 */
export function failed(
  path: CallPath,
  call: CallInProgress,
  error: ToolcribError,
  audience: CallOptions["audience"],
): Outcome {
  const { id: callId, session, target, use } = call;
  path.approvals.spend(callId);
  const masked = path.mask(error.toObject());
  const server = target?.capability.origin.source ?? serverNamedBy(masked);
  if (server === undefined) return { ok: false, callId, error: masked };
  const ownName = session.brought?.nameOf(server);
  if (masked.code === "server_unavailable" && !session.owner && !isLocalSource(server) && ownName === undefined)
    return { ok: false, callId, error: forGuests(server, masked) };
  const plain = ownName === undefined ? masked : inClientsWords(masked, server, ownName);

  const tool = target?.capability.origin.name ?? publicNameOf(use);
  const untrusted = isServerWorded(plain) ? untrustedOrigin(path, { server, tool }, audience) : undefined;
  if (untrusted === undefined) return { ok: false, callId, error: plain };
  if (target !== undefined) taint(path, call, target);
  const bounded = boundedError(plain);
  const said = { content: [{ type: "text", text: bounded.message }], details: bounded.details };
  const inspection = inspectShortResult(said, untrusted);
  call.findings = inspection.findings;
  if (inspection.verdict === "rejected") {
    const { code, message, hint } = inspection;
    return { ok: false, callId, error: { code, message, hint } };
  }
  return {
    ok: false,
    callId,
    error: inspection.verdict === "changed" ? reworded(bounded, inspection.result) : bounded,
  };
}

/** Of a server that never came up there is no capability to ask. */
function serverNamedBy({ code, details }: ErrorObject): string | undefined {
  const server = details?.["server"];
  return code === "server_unavailable" && typeof server === "string" ? server : undefined;
}

/** What the server answered, or why it is not there: that quotes its stderr, or its answer to the handshake. */
function isServerWorded({ code, details }: ErrorObject): boolean {
  return code === "server_unavailable" || details?.["rpc"] !== undefined;
}

/** The id of a server that the session brought says nothing to those who hear of it; the ids of no two servers are alike. */
function inClientsWords(error: ErrorObject, id: string, name: string): ErrorObject {
  const { message, hint, details } = error;
  return {
    ...error,
    message: message.replaceAll(id, name),
    ...(hint === undefined ? {} : { hint: hint.replaceAll(id, name) }),
    ...(details?.["server"] === id ? { details: { ...details, server: name } } : {}),
  };
}

/** Paths, addresses and stderr of the machine that the hub runs on are not for others than its user. */
function forGuests(server: string, { code, details }: ErrorObject): ErrorObject {
  const sent = details?.["sent"];
  return {
    code,
    message: `The server "${server}" is not available.`,
    hint: "Try again later, or ask whoever runs it.",
    details: { server, ...(typeof sent === "boolean" ? { sent } : {}) },
  };
}

function boundedError(error: ErrorObject): ErrorObject {
  const message = truncateMiddle(error.message, LONGEST_MESSAGE, "\n[... cut here ...]\n");
  const { details } = error;
  if (details === undefined || resultBytes(details, MOST_DETAILS) <= MOST_DETAILS) return { ...error, message };
  const rpc = details["rpc"];
  const code = isJsonObject(rpc) ? rpc["code"] : undefined;
  return { ...error, message, details: typeof code === "number" ? { rpc: { code, message } } : {} };
}

function reworded(error: ErrorObject, { content, details }: { readonly [key: string]: unknown }): ErrorObject {
  const [block]: unknown[] = Array.isArray(content) ? content : [];
  const text = isJsonObject(block) ? block["text"] : undefined;
  return {
    ...error,
    message: typeof text === "string" ? text : error.message,
    ...(isJsonObject(details) ? { details } : {}),
  };
}
