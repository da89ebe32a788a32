import { isLoopback } from "../model/loopback.ts";
import { SecretFailure } from "./provider.ts";

/** An address that credentials may be sent to: https, or this machine. The message holds no more of it than the host. */
export function checkAddress(text: string, what: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== "https:" && url.protocol !== "http:")) {
    throw new SecretFailure(`cannot be asked for: ${what} is no http or https address`);
  }
  if (url.protocol === "https:" || isLoopback(url.hostname)) return url;
  throw new SecretFailure(`cannot be asked for: ${what} is plain http, to ${url.host}`, {
    hint: "Use https. Plain http is allowed on loopback only.",
  });
}
