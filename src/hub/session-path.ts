/** The call path of a session that brought secrets with its servers: they are masked in its own calls, and only there. */
import type { BroughtParts } from "../sessions/own/brought-parts.ts";
import type { Session } from "../sessions/session.ts";
import type { AuditSink } from "../telemetry/call-record.ts";
import type { CallPath } from "./call-path.ts";
import type { Wiring } from "./wiring.ts";

const paths = new WeakMap<BroughtParts, { readonly of: CallPath; readonly path: CallPath }>();

export function pathFor({ path, config }: Wiring, { brought }: Session): CallPath {
  if (brought === undefined || !brought.redactor.learned) return path;
  const known = paths.get(brought);
  if (known?.of === path) return known.path;
  const { redactor } = brought;
  const made: CallPath = {
    ...path,
    mask: redactor.maskAll,
    maskResult: config.config.secrets.maskResults ? redactor.maskContent : path.maskResult,
    audit: maskedSink(path.audit, redactor.maskAll),
  };
  paths.set(brought, { of: path, path: made });
  return made;
}

function maskedSink(sink: AuditSink, mask: <Value>(value: Value) => Value): AuditSink {
  return {
    begin: (record, sent) => sink.begin?.(mask(record), mask(sent)),
    withhold: (callId) => sink.withhold?.(callId),
    write: (record, sent) => sink.write(mask(record), mask(sent)),
    get lost() {
      return sink.lost ?? 0;
    },
  };
}
