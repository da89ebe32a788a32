/** Logins at remote servers, for the caller or for the hub. */
import type { ServerLogin } from "../../../contract/server-schemas.ts";
import { identityOf } from "../../../model/caller.ts";
import { ToolcribError } from "../../../model/errors.ts";
import type { ServerSpec } from "../../../model/server-spec.ts";
import { missingScope } from "../http-access.ts";
import { type HandlerParts, handlersOf, type OperationContext } from "./operation-handler.ts";
import { visibleServer, visibleServers } from "./visibility.ts";

export const loginHandlers = handlersOf({
  async listLogins(_input, context, parts) {
    const { hub } = parts;
    const { logins } = hub.internals;
    const found = visibleServers(hub, context.session).map(async ({ id, name }): Promise<ServerLogin[]> => {
      const spec = specOf(parts, id);
      const user = spec && userOf(spec, context);
      const info = spec && (await logins.info(spec, user));
      if (spec === undefined || info === undefined) return [];
      const { state, expiresAt } = info;
      const perUser = spec.isolation === "user";
      return [{ serverId: id, name, state, expiresAt, user: user ?? null, perUser, own: isOwn(spec, context) }];
    });
    return { logins: (await Promise.all(found)).flat() };
  },

  async beginLogin({ serverId }, context, parts) {
    const spec = ownSpec(serverId, context, parts);
    const { caller, baseUrl, redirectBase: base } = context;
    if (base === undefined) {
      throw new ToolcribError(
        "invalid_config",
        `A login cannot come back to ${baseUrl}: the config does not have this address.`,
        {
          hint: "Set `http.publicUrl` to the address at which browsers reach the hub.",
        },
      );
    }
    return parts.hub.internals.logins.begin({
      server: serverId,
      user: userOf(spec, context),
      by: identityOf(caller),
      base,
    });
  },

  async finishLogin({ path, query }, { caller }, { hub }) {
    const params = new URLSearchParams(query);
    const { server, user } = await hub.internals.logins.finish({ by: identityOf(caller), path, params });
    const { status, lastError } = await hub.servers.connect(server, { user });
    const connected = status === "connected";
    return { serverId: server, connected, error: connected ? null : lastError };
  },

  async endLogin({ serverId }, context, parts) {
    const spec = ownSpec(serverId, context, parts);
    const { removed } = await parts.hub.internals.logins.end(serverId, userOf(spec, context));
    return { serverId, removed };
  },
});

function specOf({ hub }: HandlerParts, id: string): ServerSpec | undefined {
  return hub.config.servers.find((spec) => spec.id === id);
}

/** Undefined for the login that all share. */
function userOf({ isolation }: ServerSpec, { session }: OperationContext): string | undefined {
  return isolation === "user" ? session.user : undefined;
}

function isOwn(spec: ServerSpec, context: OperationContext): boolean {
  return userOf(spec, context) !== undefined || context.caller.scopes.has("admin");
}

function ownSpec(id: string, context: OperationContext, parts: HandlerParts): ServerSpec {
  visibleServer(parts.hub, context.session, id);
  const spec = specOf(parts, id);
  if (spec === undefined) throw new ToolcribError("not_found", `There is no server "${id}" to log in to.`);
  // One login for all is the operator's to make.
  if (!isOwn(spec, context)) throw missingScope("admin");
  return spec;
}
