/** The server that an auth command is about, with everything that a login needs to know of it. */
import { join } from "node:path";
import type { LoadedConfig } from "../../config/load-config.ts";
import { toolcribHome } from "../../config/find-config.ts";
import { systemClock } from "../../model/clock.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { ServerSpec } from "../../model/server-spec.ts";
import type { GrantKey } from "../../secrets/oauth/grant-store.ts";
import { type AuthSettings, DEFAULT_SETTINGS, OAuth } from "../../secrets/oauth/oauth.ts";
import { Redactor } from "../../secrets/redactor.ts";
import { resolveSpec } from "../../secrets/resolve-spec.ts";
import { Secrets } from "../../secrets/secrets.ts";
import { checkRemoteAddress } from "../../upstream/remote-address.ts";

export interface LoginTarget {
  readonly key: GrantKey;
  readonly settings: AuthSettings;
}

/** The logins of this home, for a command that starts no hub. */
export class Logins {
  readonly oauth: OAuth;
  readonly redactor = new Redactor();
  readonly #config: LoadedConfig;
  readonly #secrets: Secrets;

  constructor(config: LoadedConfig, env: NodeJS.ProcessEnv) {
    const home = toolcribHome(env);
    const { redactor } = this;
    this.#config = config;
    this.#secrets = new Secrets({ env, home, redactor, exec: config.config.secrets.exec });
    this.oauth = new OAuth({ dir: join(home, "auth"), clock: systemClock, redactor });
  }

  async target(id: string, user: string | undefined): Promise<LoginTarget> {
    const spec = this.#config.servers.find((each) => each.id === id);
    if (spec === undefined) {
      const known = this.#config.servers.map((each) => each.id).join(", ") || "none";
      throw new ToolcribError("not_found", `There is no server "${id}".`, { hint: `Known servers: ${known}.` });
    }
    assertUser(spec, user);
    assertLogin(spec);
    const { url, auth } = await resolveSpec(spec, this.#secrets, user === undefined ? {} : { user });
    if (url === undefined) throw new ToolcribError("internal", "a remote server without an address");
    checkRemoteAddress(url);
    const settings = auth?.type === "oauth" || auth?.type === "client-credentials" ? auth : DEFAULT_SETTINGS;
    return { key: { server: id, url, user }, settings };
  }
}

function assertLogin({ id, url, auth }: ServerSpec): void {
  if (url === undefined) {
    throw new ToolcribError("invalid_arguments", `"${id}" is a program on this machine; nobody logs in to it.`);
  }
  if (auth?.type === "bearer" || auth?.type === "api-key") {
    throw new ToolcribError(
      "invalid_arguments",
      `"${id}" is used with the ${auth.type} of its config; nobody logs in to it.`,
      {
        hint: 'Set its `auth` to {"type": "oauth"} to log in instead.',
      },
    );
  }
}

function assertUser({ id, isolation }: ServerSpec, user: string | undefined): void {
  if (user === undefined || isolation === "user") return;
  throw new ToolcribError("invalid_arguments", `All users share one connection to "${id}".`, {
    hint: 'Leave --user out, or set its `isolation` to "user".',
  });
}
