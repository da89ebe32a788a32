import { LOGIN_LINKS_PATH } from "../../doors/http/login-routes.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { Invocation } from "../command.ts";
import { findRunningHub } from "../remote-hub.ts";

export async function run(invocation: Invocation): Promise<number> {
  const { out } = invocation;
  const hub = await findRunningHub(invocation);
  const { url } = await hub.request("POST", LOGIN_LINKS_PATH);
  if (typeof url !== "string") {
    throw new ToolcribError("server_unavailable", `The hub at ${hub.url} gives no link.`, {
      hint: "It may be of an older version.",
    });
  }
  if (out.json) out.value({ url });
  else {
    out.line(url);
    out.note("It works once, for a quarter of an hour. Whoever opens it is the operator.");
  }
  return 0;
}
