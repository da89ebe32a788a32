/** One connection to the `/bridge` of a hub. Written on sockets: an HTTP client would be most of the bridge's memory. */
import type { Duplex } from "node:stream";
import { type ErrorCode, ERROR_TABLE, ToolcribError } from "../../model/errors.ts";
import { isJsonObject } from "../../model/json.ts";
import type { BridgeHello } from "../../doors/mcp/bridge-door.ts";
import { BRIDGE_PATH, BRIDGE_PROTOCOL, HELLO_HEADER, WARNING_HEADER } from "../../model/bridge.ts";

export interface HubAddress {
  readonly url: string;
  readonly token?: string | undefined;
}

interface LinkOptions {
  readonly path: string;
  readonly protocol: string;
  /** Gets what the hub has to say about the connection that it opened. */
  readonly onWarning?: (text: string) => void;
}

const CONNECT_MS = 10_000;
const MAX_HEAD_BYTES = 64 * 1024;
const WARNING = new RegExp(`^${WARNING_HEADER}: ([\\w-]*)\r$`, "im");

/** Rejects with the hub's own error, or with `server_unavailable` if there is no hub. */
export async function openHubLink(
  { url, token }: HubAddress,
  hello: BridgeHello,
  { path, protocol: upgrade, onWarning }: LinkOptions = { path: BRIDGE_PATH, protocol: BRIDGE_PROTOCOL },
): Promise<Duplex> {
  const { protocol, hostname, host, port, pathname } = new URL(url);
  const isSecure = protocol === "https:";
  const place = { host: hostname.replace(/^\[|\]$/g, ""), port: Number(port || (isSecure ? 443 : 80)) };
  const socket = isSecure
    ? (await import("node:tls")).connect({ ...place, servername: place.host })
    : process.getBuiltinModule("node:net").connect({ ...place, noDelay: true });
  const lines = [
    `GET ${pathname.replace(/\/$/, "")}${path} HTTP/1.1`,
    `Host: ${host}`,
    "Connection: Upgrade",
    `Upgrade: ${upgrade}`,
    ...(token === undefined ? [] : [`Authorization: Bearer ${token}`]),
    `${HELLO_HEADER}: ${Buffer.from(JSON.stringify(hello)).toString("base64url")}`,
  ];
  socket.write(`${lines.join("\r\n")}\r\n\r\n`);
  return new Promise((resolve, reject) => {
    let received = Buffer.alloc(0);
    const fail = (error: ToolcribError): void => {
      socket.destroy();
      reject(error);
    };
    const unavailable = (reason: string): void =>
      fail(new ToolcribError("server_unavailable", `The hub at ${url} cannot be reached: ${reason}.`));
    const onError = (error: NodeJS.ErrnoException): void => unavailable(error.code ?? error.message);
    const onEnd = (): void => fail(refusal(received.toString("utf8"), url));
    const onData = (chunk: Buffer): void => {
      received = Buffer.concat([received, chunk]);
      const end = received.indexOf("\r\n\r\n");
      if (end === -1 && received.length < MAX_HEAD_BYTES) return;
      if (!received.toString("latin1", 0, 32).startsWith("HTTP/1.1 101 ")) {
        // The body of a refusal follows; the hub closes the connection after it.
        if (received.length >= MAX_HEAD_BYTES) onEnd();
        return;
      }
      socket.off("error", onError).off("end", onEnd).off("close", onEnd).off("data", onData).setTimeout(0);
      socket.pause();
      const [, warning] = WARNING.exec(received.toString("latin1", 0, end + 2)) ?? [];
      if (warning !== undefined) onWarning?.(Buffer.from(warning, "base64url").toString("utf8"));
      const rest = received.subarray(end + 4);
      if (rest.length > 0) socket.unshift(rest);
      resolve(socket);
    };
    socket.setTimeout(CONNECT_MS, () => unavailable(`no response within ${CONNECT_MS} ms`));
    socket.on("data", onData).on("error", onError).on("end", onEnd).on("close", onEnd);
  });
}

function refusal(response: string, url: string): ToolcribError {
  const [head = "", body = ""] = response.split("\r\n\r\n", 2);
  try {
    const value: unknown = JSON.parse(body.slice(body.indexOf("{"), body.lastIndexOf("}") + 1));
    const error = isJsonObject(value) ? value["error"] : undefined;
    if (isJsonObject(error) && typeof error["message"] === "string" && isErrorCode(error["code"])) {
      const { code, message, hint } = error;
      return new ToolcribError(code, message, { hint: typeof hint === "string" ? hint : undefined });
    }
  } catch {
    // Not a hub of ours.
  }
  const status = /^HTTP\/1\.\d (\d{3})/.exec(head)?.[1];
  const what = status === undefined ? "closed the connection" : `responded with HTTP ${status}`;
  return new ToolcribError("server_unavailable", `The server at ${url} ${what}.`, {
    hint: "Is it a hub of this version?",
  });
}

function isErrorCode(code: unknown): code is ErrorCode {
  return typeof code === "string" && Object.hasOwn(ERROR_TABLE, code);
}
