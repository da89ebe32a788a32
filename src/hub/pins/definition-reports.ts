import type { Clock } from "../../base/clock.ts";
import type { Emitter } from "../../base/emitter.ts";
import type { AuditLog } from "../../telemetry/audit/log.ts";
import type { HubEvents } from "../hub-events.ts";

export interface DefinitionReportsOptions {
  readonly clock: Clock;
  readonly events: Emitter<HubEvents>;
  readonly audit: Pick<AuditLog, "event">;
}

interface Origin {
  readonly source: string;
  readonly name: string;
}

/** What is found out about definitions goes into the audit log, and what somebody should see is a warning as well. */
export class DefinitionReports {
  readonly #options: DefinitionReportsOptions;

  constructor(options: DefinitionReportsOptions) {
    this.#options = options;
  }

  warn(event: string, origin: Origin, message: string, details: Record<string, unknown>): void {
    this.#options.events.emit("warning", { server: origin.source, message });
    this.record(event, origin, details);
  }

  record(event: string, origin: Origin | null, details: Record<string, unknown>): void {
    const { audit, clock } = this.#options;
    audit.event({ time: new Date(clock.now()).toISOString(), event, origin, details });
  }
}
