/** The store of the config that a command works on, with the secrets in it. */
import { systemClock } from "../base/clock.ts";
import { toolcribHome } from "../config/find-config.ts";
import type { LoadedConfig } from "../config/load-config.ts";
import { lookUpAuditKeys } from "../hub/audit/open-audit.ts";
import { type HubHome, openHome } from "../hub/create/open-home.ts";
import { ServerSecrets } from "../hub/servers/server-secrets.ts";
import { StoredServerConfigs } from "../hub/servers/stored-servers.ts";
import { type AuditKeys, NO_KEYS } from "../telemetry/audit/key.ts";
import type { Invocation } from "./command.ts";

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
  const secrets = new ServerSecrets({ mode: () => undefined, sealed, env, redactor: out.redactor });
  const warn = (message: string): void => out.warn(message);
  const place = { clock: systemClock, home: toolcribHome(env), env };
  return new StoredServerConfigs({ store, ...place, importsFile: false, secrets, warn }).join(config);
}

/** Rejects if the config names a key that cannot be had. */
export async function commandAuditKeys(invocation: Invocation, config: LoadedConfig): Promise<AuditKeys> {
  const { key, oldKeys } = config.config.audit;
  if (key === undefined && oldKeys.length === 0) return NO_KEYS;
  const home = await openCommandHome(invocation, config, false);
  try {
    return await lookUpAuditKeys(config, home.secrets);
  } finally {
    await home.close();
  }
}
