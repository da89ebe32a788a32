/** Host and Origin, before anything else is looked at. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { ToolcribError } from "../../model/errors.ts";
import { sendError } from "./answers.ts";
import { allowOrigin } from "./cors.ts";
import type { HostRules } from "./hosts.ts";

/** False if the request was refused, and answered. A header that is there twice is refused: a proxy may have read the other. */
export function admitted(request: IncomingMessage, response: ServerResponse, hosts: HostRules): boolean {
  const repeated = repeatedHeader(request.rawHeaders);
  if (repeated !== undefined) {
    sendError(response, new ToolcribError("invalid_arguments", `The header ${repeated} is there more than once.`));
    return false;
  }
  const { host, origin } = request.headers;
  if (host === undefined || !hosts.acceptsHost(host)) {
    const error = new ToolcribError("denied", "This hub does not go by the name in the Host header.", {
      hint: "Names that are right are listed in http.allowedHosts.",
    });
    sendError(response, error);
    return false;
  }
  if (origin === undefined) return true;
  if (!hosts.acceptsOrigin(origin, host)) {
    const error = new ToolcribError("denied", "Web pages of this origin may not use this hub.", {
      hint: "Only its own page may; `http.cors` lists further origins.",
    });
    sendError(response, error, { headers: { vary: "Origin" } });
    return false;
  }
  allowOrigin(response, origin);
  return true;
}

const ONLY_ONCE = ["host", "origin", "authorization"];

function repeatedHeader(raw: readonly string[]): string | undefined {
  let seen = 0;
  for (let index = 0; index < raw.length; index += 2) {
    const name = raw[index] ?? "";
    // Lengths of the three names: lower-casing every name would cost more than the rest of the check.
    if (name.length !== 4 && name.length !== 6 && name.length !== 13) continue;
    const which = ONLY_ONCE.indexOf(name.toLowerCase());
    if (which === -1) continue;
    if ((seen & (1 << which)) !== 0) return ONLY_ONCE[which];
    seen |= 1 << which;
  }
  return undefined;
}
