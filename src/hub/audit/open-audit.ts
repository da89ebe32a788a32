/** Makes the audit log of a hub: the journal that is written, and what reads it and takes it into the store. */
import { join } from "node:path";
import type { Config } from "../../model/config.ts";
import type { Clock } from "../../base/clock.ts";
import { asToolcribError, ToolcribError } from "../../model/errors.ts";
import type { LoadedConfig } from "../../model/loaded-config.ts";
import type { Secrets } from "../../secrets/secrets.ts";
import type { Store } from "../../store/store.ts";
import { AuditKey, type AuditKeys, auditKeysOf, NO_KEYS } from "../../telemetry/audit/key.ts";
import { AuditLog } from "../../telemetry/audit/log.ts";
import { HubAudit } from "./hub-audit.ts";
import { AuditIntake } from "./intake.ts";

export interface OpenAuditOptions {
  /** `$TOOLCRIB_HOME`. */
  readonly home: string;
  readonly config: Config["audit"];
  readonly store: Store | undefined;
  readonly keys?: AuditKeys;
  /** Name of this node of a cluster. */
  readonly node?: string | undefined;
  readonly clock: Clock;
  readonly redact: (text: string) => string;
  readonly warn: (message: string) => void;
}

export function openAudit(options: OpenAuditOptions): { readonly log: AuditLog; readonly audit: HubAudit } {
  const { config, clock, redact, warn } = options;
  const { maxBytes, maxDays } = config;
  const { store, keys = NO_KEYS } = options;
  const dir = join(options.home, "audit");
  const log = new AuditLog({
    dir,
    maxBytes,
    maxDays,
    isJournal: store !== undefined,
    keys,
    keepArguments: config.arguments,
    redact,
    node: options.node,
    clock,
    onProblem: warn,
    onWritten: () => intake?.soon(),
  });
  const intake =
    store &&
    new AuditIntake({
      dir,
      store: store.audit,
      settings: store.settings,
      journal: log,
      clock,
      maxBytes,
      maxDays,
      warn,
    });
  return { log, audit: new HubAudit({ dir, log, clock, store, intake, keys }) };
}

/**
 * The keys that `audit.key` and `audit.oldKeys` name, looked up once: a log does not change its key while it is written.
 * Rejects if one cannot be had, because a log that should be keyed must not become a plain one unnoticed.
 */
export async function lookUpAuditKeys({ config, baseDir }: LoadedConfig, secrets: Secrets): Promise<AuditKeys> {
  const { key, oldKeys } = config.audit;
  const lookUp = async (name: string, reference: string): Promise<AuditKey> => {
    try {
      const { value } = await secrets.resolve(reference, { baseDir });
      secrets.redactor.addCredential(value);
      return new AuditKey(value, name);
    } catch (error) {
      const { code, message, hint } = asToolcribError(error);
      throw new ToolcribError(code, `The audit log cannot be keyed, so nothing is started: ${message}`, {
        hint: hint ?? `Give \`${name}\` a value, or take it out of the config.`,
        cause: error,
      });
    }
  };
  const current = key === undefined ? undefined : await lookUp("audit.key", key);
  const old = await Promise.all(oldKeys.map((each, index) => lookUp(`audit.oldKeys[${index}]`, each)));
  return auditKeysOf(current, old);
}
