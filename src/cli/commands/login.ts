import { LOGIN_LINKS_PATH } from "../../doors/http/login-routes.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { Invocation } from "../command.ts";
import { findRunningHub } from "../remote-hub.ts";

export async function run(invocation: Invocation): Promise<number> {
  const { out } = invocation;
  const hub = await findRunningHub(invocation);
  const { url } = await hub.request("POST", LOGIN_LINKS_PATH);
  if (typeof url !== "string") {
    throw new ToolcribError("server_unavailable", `The hub at ${hub.url} did not return a link.`, {
      hint: "It may be an older version.",
    });
  }
  if (out.json) out.value({ url });
  else {
    out.line(url);
    out.note("The link works once, for 15 minutes. Whoever opens it has full access to the hub.");
  }
  return 0;
}
