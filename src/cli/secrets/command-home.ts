/** The store of the config that a command works on, with the secrets in it. */
import { toolcribHome } from "../../config/find-config.ts";
import type { LoadedConfig } from "../../config/load-config.ts";
import { type HubHome, openHome } from "../../hub/open-home.ts";
import { AddedServers } from "../../hub/servers/added-servers.ts";
import { ServerSecrets } from "../../hub/servers/server-secrets.ts";
import { systemClock } from "../../model/clock.ts";
import type { Invocation } from "../command.ts";

type Place = Pick<Invocation, "env" | "out">;

/** @param create Whether a database is made where there is none. */
export function openCommandHome({ env, out }: Place, config: LoadedConfig, create: boolean): Promise<HubHome> {
  const warn = (message: string): void => out.warn(message);
  const place = { env, home: toolcribHome(env), clock: systemClock, redactor: out.redactor, warn };
  return openHome(() => config, create ? undefined : "existing", place);
}

/** The config with the servers that the store holds. */
export function withStoredServers({ env, out }: Place, config: LoadedConfig, home: HubHome): Promise<LoadedConfig> {
  const { store, sealed } = home;
  const kept = new ServerSecrets({ mode: () => undefined, sealed, env, redactor: out.redactor });
  const warn = (message: string): void => out.warn(message);
  const place = { clock: systemClock, home: toolcribHome(env), env };
  return new AddedServers({ store, ...place, takesIn: false, kept, warn }).join(config);
}
