/** Servers of the store that cannot be used: they are shown with the reason, and can be mended or removed. */
import type { ServerDetail } from "../../contract/server.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { ServerInfo } from "../../model/server-state.ts";
import type { SpecOrigin } from "../../model/server-spec.ts";
import type { Redactor } from "../../secrets/redactor.ts";
import type { StoredServer } from "../../store/store.ts";
import { etagOf } from "./etag.ts";
import { maskedEntry } from "./masked-entry.ts";

export interface LeftOut {
  readonly server: StoredServer;
  readonly origin: SpecOrigin;
  readonly reason: string;
}

export function infoOfLeftOut({ server: { id, entry }, origin, reason }: LeftOut): ServerInfo {
  return {
    ...{ id, name: id, origin, lastError: reason, hint: "Change its entry, or remove it." },
    ...{ state: "failed", status: "error", transport: entry["url"] === undefined ? "stdio" : "http" },
    ...{ capabilities: {}, toolCount: 0, serverVersion: null, connectedAt: null, era: null, protocolVersion: null },
    ...{ tags: [], warnings: [] },
  };
}

export function detailOfLeftOut(left: LeftOut, redactor: Redactor): ServerDetail {
  const { entry, revision } = left.server;
  const { tags: _tags, warnings: _warnings, ...info } = redactor.maskAll(infoOfLeftOut(left));
  return {
    ...info,
    ...{ tags: [], warnings: [], origin: { ...left.origin }, from: "store", editable: true },
    enabled: entry["enabled"] !== false,
    autoConnect: entry["autoConnect"] !== false,
    config: maskedEntry(entry, redactor),
    etag: etagOf(entry, revision),
    ...{ stderr: [], history: [], resourceCount: 0, promptCount: 0 },
  };
}

export function cannotBeUsed({ server: { id }, reason }: LeftOut): ToolcribError {
  return new ToolcribError("invalid_config", `The server "${id}" cannot be used: ${reason}`, {
    hint: "Change its entry, or remove it.",
  });
}
