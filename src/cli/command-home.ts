/** The home of a command without a hub: its store, its secrets and the keys of the audit log. */
import type { LoadedConfig } from "../model/loaded-config.ts";
import { systemClock } from "../base/clock.ts";
import { toolcribHome } from "../config/find-config.ts";
import { lookUpAuditKeys } from "../hub/audit/hub-audit.ts";
import { type HubHome, openHome } from "../hub/create/open-home.ts";
import { ServerSecrets } from "../hub/servers/server-secrets.ts";
import { StoredServerConfigs } from "../hub/servers/stored-servers.ts";
import { type AuditKeys, NO_KEYS } from "../telemetry/audit/key.ts";
import type { Invocation } from "./command.ts";

type HomeInvocation = Pick<Invocation, "env" | "out">;

/** @param create Whether to create a missing database. */
export function openCommandHome({ env, out }: HomeInvocation, config: LoadedConfig, create: boolean): Promise<HubHome> {
  return openHome(() => config, create ? undefined : "existing", {
    env,
    home: toolcribHome(env),
    clock: systemClock,
    redactor: out.redactor,
    warn: (message) => out.warn(message),
  });
}

/** The config with the servers of the store. */
export function withStoredServers(
  { env, out }: HomeInvocation,
  config: LoadedConfig,
  home: HubHome,
): Promise<LoadedConfig> {
  const { store, sealed } = home;
  const secrets = new ServerSecrets({ mode: () => undefined, sealed, env, redactor: out.redactor });
  return new StoredServerConfigs({
    store,
    clock: systemClock,
    home: toolcribHome(env),
    env,
    importsFile: false,
    secrets,
    warn: (message) => out.warn(message),
  }).join(config);
}

/** Rejects if a key that the config names is missing. */
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
