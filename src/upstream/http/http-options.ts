/** What both HTTP wires are told, checked before the first request. */
import type { Clock } from "../../model/clock.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { WireCredentials } from "./authorized-client.ts";
import { validateHeaderName, validateHeaderValue } from "./node-http.ts";
import type { Reach } from "./reach.ts";

export interface HttpWireOptions {
  readonly url: string;
  /** Sent with every request, to this origin only. They hold credentials and are never shown. */
  readonly headers: Readonly<Record<string, string>>;
  /** Credentials that change while the wire is open; they win over `headers`. */
  readonly credentials?: WireCredentials | undefined;
  /** A larger message is dropped and its request fails; default 64 MiB. */
  readonly maxMessageBytes?: number;
  readonly clock?: Clock;
  /** Where requests may go; anywhere if absent. */
  readonly reach?: Reach | undefined;
}

export const MAX_MESSAGE_BYTES = 64 * 1024 * 1024;

/** Protocol and framing are the wire's own business; a user's value would break it. */
const RESERVED = new Set(["accept", "connection", "content-length", "content-type", "host", "transfer-encoding"]);

export interface Remote {
  readonly url: URL;
  /** Names in lower case, so that one name has one value. */
  readonly headers: Readonly<Record<string, string>>;
}

export function checkRemote(options: HttpWireOptions): Remote {
  const url = URL.parse(options.url);
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:")) {
    throw invalid("the address is not a URL that begins with https:// or http://", "Correct `url`.");
  }
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(options.headers)) {
    try {
      validateHeaderName(name);
      validateHeaderValue(name, value);
    } catch {
      const hint = "A line break at the end of a token is a common cause.";
      throw invalid(`the header ${JSON.stringify(name)} holds a character that HTTP does not allow`, hint);
    }
    if (!RESERVED.has(name.toLowerCase())) headers[name.toLowerCase()] = value;
  }
  return { url, headers };
}

function invalid(message: string, hint: string): ToolcribError {
  return new ToolcribError("invalid_config", message, { hint, details: { sent: false } });
}
