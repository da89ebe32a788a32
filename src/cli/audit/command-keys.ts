/** The keys of the audit log for commands that read or write it without a hub. */
import type { LoadedConfig } from "../../config/load-config.ts";
import { lookUpAuditKeys } from "../../hub/audit/open-audit.ts";
import { type AuditKeys, NO_KEYS } from "../../telemetry/audit/key.ts";
import type { Invocation } from "../command.ts";
import { openCommandHome } from "../secrets/command-home.ts";

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
