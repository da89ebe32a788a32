/** Who gets in: `toolcrib token` makes tokens for clients of the HTTP endpoints, lists and revokes them; `toolcrib login` opens the page. */
import type { TokenInfo } from "../../contract/change-schemas.ts";
import { LOGIN_LINKS_PATH } from "../../doors/http/login-routes.ts";
import { listTokens } from "../../hub/activity/token-uses.ts";
import { SCOPES, type Scope } from "../../model/caller.ts";
import { ToolcribError } from "../../model/errors.ts";
import { changeConfig } from "../change-config.ts";
import { type Invocation, unknownAction } from "../command.ts";
import { findRunningHub } from "../remote-hub.ts";
import { withHub } from "../running-hub.ts";
import type { Column } from "../table.ts";

export async function run(invocation: Invocation): Promise<number> {
  const [action = "", name] = invocation.args;
  switch (action) {
    case "add":
      return add(invocation, required(name, "add"));
    case "list":
      return list(invocation);
    case "revoke":
      return revoke(invocation, required(name, "revoke"));
    default:
      throw unknownAction("token", action, "Use toolcrib token add, list or revoke.");
  }
}

function required(name: string | undefined, action: string): string {
  if (name !== undefined && name !== "") return name;
  throw new ToolcribError("invalid_arguments", `It needs a name: toolcrib token ${action} <name>.`);
}

async function add(invocation: Invocation, name: string): Promise<number> {
  const { flags, out } = invocation;
  const [user, role] = [flags.text("user"), flags.text("role")];
  const scopes = scopesOf(flags.text("scopes"));
  return withHub(invocation, async ({ hub }) => {
    const { token } = await changeConfig(invocation, hub, [{ kind: "token", name, user, role, scopes }]);
    if (token === undefined || out.json) return 0;
    out.note("The token. It is shown only now; the config has its digest.");
    out.line(token);
    return 0;
  });
}

function scopesOf(text = "read,call"): Scope[] {
  return text.split(",").map((given) => {
    const scope = SCOPES.find((each) => each === given.trim());
    if (scope !== undefined) return scope;
    throw new ToolcribError("invalid_arguments", `There is no scope ${JSON.stringify(given)}.`, {
      hint: `Scopes: ${SCOPES.join(", ")}.`,
    });
  });
}

async function revoke(invocation: Invocation, name: string): Promise<number> {
  return withHub(invocation, async ({ hub }) => {
    await changeConfig(invocation, hub, [{ kind: "revokeToken", name }]);
    return 0;
  });
}

const COLUMNS: readonly Column<TokenInfo>[] = [
  { title: "NAME", cell: ({ name }) => name ?? "-" },
  { title: "USER", cell: ({ user }) => user ?? "-" },
  { title: "ROLE", cell: ({ role }) => role ?? "-" },
  { title: "SCOPES", cell: ({ scopes }) => scopes.join(",") },
  { title: "MADE", cell: ({ created }) => created ?? "-" },
  { title: "LAST USED", cell: ({ lastUsed }) => lastUsed ?? "-" },
];

async function list(invocation: Invocation): Promise<number> {
  const { out } = invocation;
  return withHub(invocation, async ({ hub }) => {
    const tokens = await listTokens(hub.config, hub.internals.store);
    if (out.json) out.value(tokens);
    else if (tokens.length === 0) out.line("The config has no tokens.");
    else out.table(COLUMNS, tokens);
    return 0;
  });
}

export async function runLogin(invocation: Invocation): Promise<number> {
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
