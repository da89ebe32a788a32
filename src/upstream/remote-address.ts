/** The rule that remote servers are reached over https only, because headers carry credentials. */
import { ToolcribError } from "../model/errors.ts";
import { isLoopback } from "../model/loopback.ts";
import type { Reach } from "./http/reach.ts";

/**
 * Throws for an address that must not be used. The message holds no query, which may hold a key.
 * @param reach Of a server that a client brought.
 * @param allowHttp The operator said of this very server that its network can be trusted.
 */
export function checkRemoteAddress(text: string, reach?: Reach, allowHttp = false): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== "https:" && url.protocol !== "http:")) {
    throw new ToolcribError("invalid_config", "The url is not a valid http or https address.", {
      hint: "Write it in full, such as https://example.com/mcp.",
    });
  }
  reach?.check(url);
  const isSafe = url.protocol === "https:" || isLoopback(url.hostname);
  if (isSafe || allowHttp || reach?.allowsPlain(url) === true) return url;
  throw new ToolcribError("invalid_config", `The url of ${url.host} is plain http; remote servers must be https.`, {
    hint: "Use https. Plain http is allowed on loopback only (localhost, 127.0.0.1, ::1).",
  });
}
