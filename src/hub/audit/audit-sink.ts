/** Where the records of calls go: to the audit log, and to everybody who listens to the hub. */
import type { Emitter } from "../../base/emitter.ts";
import type { AuditLog } from "../../telemetry/audit/log.ts";
import type { AuditSink } from "../../telemetry/call-record.ts";
import type { HubEvents } from "../hub-events.ts";

export function auditSink(audit: AuditLog, events: Emitter<HubEvents>): AuditSink {
  return {
    begin(record, sent) {
      events.emit("call-start", record);
      return audit.begin(record, sent);
    },
    withhold: (callId) => audit.withhold(callId),
    write(record, sent) {
      events.emit("call", record);
      audit.write(record, sent);
    },
    get lost() {
      return audit.lost;
    },
  };
}
