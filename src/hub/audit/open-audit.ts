/** Makes the audit log of a hub: the journal that is written, and what reads it and takes it into the store. */
import { join } from "node:path";
import type { Config } from "../../model/config.ts";
import type { Clock } from "../../model/clock.ts";
import type { Store } from "../../store/store.ts";
import { AuditLog } from "../../telemetry/audit/log.ts";
import { HubAudit } from "./hub-audit.ts";
import { AuditIntake } from "./intake.ts";

export interface OpenAuditOptions {
  /** `$TOOLCRIB_HOME`. */
  readonly home: string;
  readonly config: Config["audit"];
  readonly store: Store | undefined;
  /** Name of this node of a cluster. */
  readonly node?: string | undefined;
  readonly clock: Clock;
  readonly redact: (text: string) => string;
  readonly warn: (message: string) => void;
}

export function openAudit(options: OpenAuditOptions): { readonly log: AuditLog; readonly audit: HubAudit } {
  const { config, clock, redact, warn } = options;
  const { maxBytes, maxDays } = config;
  const { store } = options;
  const dir = join(options.home, "audit");
  const log = new AuditLog({
    dir,
    maxBytes,
    maxDays,
    isJournal: store !== undefined,
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
  const settings = store?.kind === "postgres" ? store.settings : undefined;
  return { log, audit: new HubAudit({ dir, log, clock, store: store?.audit, intake, settings }) };
}
