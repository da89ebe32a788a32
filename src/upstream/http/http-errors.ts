/** Errors of HTTP, with messages that help to fix them. They never contain a header or a query. */
import { type ErrorCode, ToolcribError } from "../../model/errors.ts";
import { isJsonObject } from "../../model/json.ts";
import type { RpcError } from "../../model/protocol.ts";
import type { ResponseHeaders } from "./http-connection.ts";

interface Reason {
  readonly text: (url: URL) => string;
  readonly hint?: string;
}

const TRUST = "If it is your own authority, name its file in NODE_EXTRA_CA_CERTS.";
const untrusted: Reason = {
  text: (url) => `the certificate of ${url.host} is not signed by an authority that this machine trusts`,
  hint: TRUST,
};
const selfSigned: Reason = { text: (url) => `the certificate of ${url.host} is self-signed`, hint: TRUST };
const unreachable: Reason = {
  text: (url) => `the network cannot reach ${url.host}`,
  hint: "Check the network and any VPN.",
};
const cutOff: Reason = { text: (url) => `the connection to ${url.host} was cut` };
const noTls: Reason = {
  text: (url) => `${url.host} does not answer with TLS`,
  hint: "Does the address have to begin with http:// instead of https://?",
};
const timedOut: Reason = {
  text: (url) => `no connection to ${url.host} within the time allowed`,
  hint: "Check the address, and whether a firewall is in the way.",
};

const BY_CODE: Readonly<Record<string, Reason>> = {
  ECONNREFUSED: {
    text: (url) => `nothing answers at ${url.host} (connection refused)`,
    hint: "Is the server running, and is the port right?",
  },
  ENOTFOUND: {
    text: (url) => `the host ${url.hostname} does not exist`,
    hint: "Check the address for a typing error.",
  },
  EAI_AGAIN: {
    text: (url) => `the name ${url.hostname} cannot be looked up now`,
    hint: "Check the network connection.",
  },
  EHOSTUNREACH: unreachable,
  ENETUNREACH: unreachable,
  EADDRNOTAVAIL: unreachable,
  ETIMEDOUT: timedOut,
  ECONNRESET: cutOff,
  EPIPE: cutOff,
  ECONNABORTED: cutOff,
  CERT_HAS_EXPIRED: {
    text: (url) => `the certificate of ${url.host} has expired`,
    hint: "Its operator has to renew it.",
  },
  CERT_NOT_YET_VALID: {
    text: (url) => `the certificate of ${url.host} is not valid yet`,
    hint: "Is the clock of this machine right?",
  },
  CERT_REVOKED: { text: (url) => `the certificate of ${url.host} was revoked` },
  ERR_TLS_CERT_ALTNAME_INVALID: {
    text: (url) => `the certificate of ${url.host} is for another host name`,
    hint: "Use the name that the certificate was made for.",
  },
  DEPTH_ZERO_SELF_SIGNED_CERT: selfSigned,
  SELF_SIGNED_CERT_IN_CHAIN: selfSigned,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: untrusted,
  UNABLE_TO_GET_ISSUER_CERT: untrusted,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: untrusted,
  CERT_UNTRUSTED: untrusted,
  EPROTO: noTls,
  ERR_SSL_WRONG_VERSION_NUMBER: noTls,
  ERR_SSL_PACKET_LENGTH_TOO_LONG: noTls,
};

/** `sent` is false if the request cannot have reached the server. */
export function connectionError(error: unknown, url: URL, sent: boolean): ToolcribError {
  if (error instanceof ToolcribError) return error;
  const code = error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "";
  const details = { sent, reason: code };
  const reason = BY_CODE[code];
  if (reason !== undefined) {
    return new ToolcribError("server_unavailable", reason.text(url), { hint: reason.hint, details, cause: error });
  }
  if (code.startsWith("HPE_")) {
    const hint = "Is another kind of server on that port, or does the address have to begin with https://?";
    const text = `${url.host} does not answer with HTTP`;
    return new ToolcribError("server_unavailable", text, { hint, details, cause: error });
  }
  const message = error instanceof Error && error.message !== "" ? error.message : code || String(error);
  const text = `the connection to ${url.host} failed: ${message}`;
  return new ToolcribError("server_unavailable", text, { details, cause: error });
}

export interface ErrorResponse {
  readonly status: number;
  readonly headers: ResponseHeaders;
  /** The beginning of the body. */
  readonly body: string;
  readonly url: URL;
}

/** An answer with an error status. A JSON-RPC error in its body is kept in `details.rpc`. */
export function statusError(answer: ErrorResponse, extra: Readonly<Record<string, unknown>> = {}): ToolcribError {
  const rpc = rpcErrorIn(answer.body);
  const { code, text, hint } = statusReason(answer.status, displayAddress(answer.url));
  const said = rpc === undefined || rpc.message === "" ? "" : `: ${rpc.message}`;
  const challenge = answer.headers["www-authenticate"];
  const details = { status: answer.status, rpc, challenge, ...extra };
  return new ToolcribError(code, `${text}${said}`, { hint, details });
}

function statusReason(status: number, address: string): { code: ErrorCode; text: string; hint?: string } {
  if (status === 401) {
    const hint = "Set `auth` or an Authorization header for this server, or renew its token.";
    return { code: "unauthorized", text: `${address} asks for credentials (HTTP 401)`, hint };
  }
  if (status === 403) {
    const hint = "The credentials in `auth` or `headers` may lack a permission.";
    return { code: "unauthorized", text: `${address} denies access (HTTP 403)`, hint };
  }
  if (status === 404) {
    const hint = "Check the path of the address.";
    return { code: "server_unavailable", text: `nothing is at ${address} (HTTP 404)`, hint };
  }
  if (status === 405) {
    const hint = "The address may be of another transport: try `transport` http or sse.";
    return { code: "server_unavailable", text: `${address} does not take this kind of request (HTTP 405)`, hint };
  }
  if (status === 429) {
    const hint = "Wait, or call it less often.";
    return { code: "rate_limited", text: `${address} gets too many requests (HTTP 429)`, hint };
  }
  if (status >= 500) {
    const text = `${address} has an internal error (HTTP ${status})`;
    return { code: "server_unavailable", text, hint: "Try again later." };
  }
  return { code: "server_unavailable", text: `${address} refused the request (HTTP ${status})` };
}

/** An answer that is fine as HTTP and is not MCP, such as the page of a web site. */
export function notMcpError(contentType: string | undefined, url: URL): ToolcribError {
  const kind = contentType?.split(";")[0]?.trim();
  const message = `${displayAddress(url)} is not an MCP server: it answered with ${kind || "no content"}`;
  const hint = "Check the path of the address; many servers are at /mcp or /sse.";
  return new ToolcribError("server_unavailable", message, { hint, details: { contentType: kind ?? null } });
}

/** Without user, password and query, which may be secrets. */
export function displayAddress(url: URL): string {
  return `${url.origin}${url.pathname}`;
}

function rpcErrorIn(body: string): RpcError | undefined {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    return undefined;
  }
  const error = isJsonObject(value) ? value["error"] : undefined;
  if (!isJsonObject(error) || typeof error["code"] !== "number") return undefined;
  return { ...error, code: error["code"], message: typeof error["message"] === "string" ? error["message"] : "" };
}
