import { SCOPES } from "../../../../model/caller.ts";
import type { Handlers } from "../operation.ts";

export const overviewHandlers: Handlers<"me" | "overview"> = {
  me: (_input, { caller, baseUrl }, { version }) => ({
    user: caller.user ?? null,
    role: caller.role ?? null,
    owner: caller.owner,
    scopes: SCOPES.filter((scope) => caller.scopes.has(scope)),
    version,
    url: baseUrl,
  }),
  overview: (_input, _context, { hub }) => hub.activity.overview(),
};
