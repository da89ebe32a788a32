import { Emitter } from "../base/emitter.ts";
import type { Catalog } from "../catalog/catalog.ts";
import type { CatalogChange } from "../catalog/snapshot.ts";
import type { SkillImportReport } from "../contract/skill-schemas.ts";
import type { AskOutcome, AskRequest } from "../model/decision.ts";
import { type FindingCode, isAtLeast, type Place } from "../model/finding.ts";
import type { JsonObject } from "../model/json.ts";
import type { LogMessage } from "../model/protocol.ts";
import type { ServerInfo, ServerState } from "../model/server-state.ts";
import type { Redactor } from "../secrets/redactor.ts";
import type { Session } from "../sessions/session.ts";
import type { CallRecord, StartRecord } from "../telemetry/call-record.ts";

/** The difference between two configs, as it was applied. */
export interface ReloadReport {
  /** Ids of servers. Those of roles are named as everywhere: `github@reviewer`. */
  readonly added: readonly string[];
  readonly removed: readonly string[];
  /** Same id, other entry; only where the link itself differs is it made again. */
  readonly changed: readonly string[];
  readonly kept: readonly string[];
  /** Other keys of the config that changed and apply from now on, such as `tools` or `roles`. */
  readonly settings: readonly string[];
  /** Keys that changed and apply after a restart only. */
  readonly needsRestart: readonly string[];
}

export interface HubEvents {
  /** A server changed its state. */
  server: { readonly info: ServerInfo; readonly previous: ServerState["kind"] };
  catalog: CatalogChange;
  /** Sessions may see something else although the catalog did not change: rules or pins did. */
  visibility: Readonly<Record<string, never>>;
  /**
   * A server's own log message. `user`: on whose connection, where each user has one, null for the hub owner's own;
   * `session`: the same where each session has one; do not show it to others. `callId`: it belongs to that call, whose caller already has it.
   */
  log: {
    readonly server: string;
    readonly message: LogMessage;
    readonly user?: string | null;
    readonly session?: string;
    readonly callId?: string;
  };
  /** Any other notification of a server that belongs to no call. */
  notice: {
    readonly server: string;
    readonly method: string;
    readonly params: JsonObject;
    readonly user?: string | null;
    readonly session?: string;
  };
  /** The config was loaded again and is applied; `hub.config` is the new one. */
  reload: { readonly report: ReloadReport };
  /** Something odd that harmed nothing. */
  warning: {
    readonly server?: string;
    readonly message: string;
    /** It is about a suspicious definition. */
    readonly isFinding?: boolean;
    /** Names the task that failed; the warning goes once it has succeeded. */
    readonly failed?: string;
  };
  /** The task that failed with a warning of this name has succeeded. */
  mended: { readonly failed: string };
  /** The same about what a session brought, which its client was told. For the log: other sessions must not see it. */
  "session-warning": { readonly session: string; readonly server?: string | undefined; readonly message: string };
  /** A call waits for approval. */
  ask: AskRequest;
  answer: { readonly request: AskRequest; readonly answer: AskOutcome };
  /** A session was opened, or has ended. The hub's own is there from the start. */
  session: { readonly session: Session; readonly open: boolean };
  /** Skills were imported through the hub. `single`: the path was that of one skill, and not of a folder of skills. */
  "skill-import": { readonly path: string; readonly single: boolean; readonly result: SkillImportReport };
  /** An imported skill was removed through the hub. */
  "skill-remove": { readonly skillId: string; readonly name: string };
  /** Other skills are offered than before, or one of them changed. */
  skills: Readonly<Record<string, never>>;
  /** Pins, or what is known of the tools behind them, are other than before. */
  pins: Readonly<Record<string, never>>;
  /** Recording of arguments and results was switched on or off, or has ended. */
  recording: Readonly<Record<string, never>>;
  /** A call is about to reach its source. One that is refused before has only a `call`. */
  "call-start": StartRecord;
  /** A call ended. */
  call: CallRecord;
  /** The result of a call has suspicious content. Comes after its `call`. */
  suspicious: SuspiciousResult;
  /**
   * A resource that some session subscribed to changed, or a part of one; `uri` is the public one, `originUri` the server's
   * own, `params` what the server said.
   */
  "resource-updated": {
    readonly server: string;
    readonly uri: string;
    readonly originUri: string;
    readonly params?: JsonObject;
    readonly user?: string | null;
    readonly session?: string;
  };
}

/** The kinds of findings in the result of a call, never the text. */
export interface SuspiciousResult {
  readonly callId: string;
  readonly session: string;
  /** The public name of the tool, resource or prompt. */
  readonly name: string;
  readonly server: string;
  /** The server's own name of it. */
  readonly tool: string;
  readonly kinds: readonly FindingCode[];
  /** Where the server put them. */
  readonly places: readonly Place[];
  /** The highest, of 10. */
  readonly score: number;
  /** Forged boundary markers that were replaced. */
  readonly forgedMarkers: number;
  /** Whether the result was withheld. */
  readonly blocked: boolean;
}

/** Undefined for a result without findings of medium severity or above. */
export function suspiciousResult(record: CallRecord): SuspiciousResult | undefined {
  const { findings = [], forgedMarkers = 0, origin } = record;
  const serious = findings.filter(({ severity }) => isAtLeast(severity, "medium"));
  if (origin === null || (serious.length === 0 && forgedMarkers === 0)) return undefined;
  const { callId, session, name } = record;
  const kinds = [...new Set(serious.map(({ code }) => code))];
  const places = [...new Set(serious.flatMap(({ place }) => place ?? []))];
  const score = Math.max(0, ...serious.map((finding) => finding.score ?? 0));
  const blocked = record.outcome === "blocked";
  return {
    callId,
    session,
    name,
    server: origin.source,
    tool: origin.name,
    kinds,
    places,
    score,
    forgedMarkers,
    blocked,
  };
}

/** Events that quote servers, programs or configs. Records of calls are masked where they are written. */
const QUOTING: ReadonlySet<keyof HubEvents> = new Set(["log", "notice", "server", "warning"]);

/** The hub's events, with secrets masked before any listener gets them. */
export class MaskedEvents extends Emitter<HubEvents> {
  readonly #redactor: Redactor;

  constructor(redactor: Redactor) {
    super();
    this.#redactor = redactor;
  }

  override emit<Name extends keyof HubEvents>(name: Name, event: HubEvents[Name]): void {
    super.emit(name, QUOTING.has(name) ? this.#redactor.maskAll(event) : this.#withParamsMasked(event));
  }

  /** Of an updated resource: its URIs are compared with what clients follow, and stay as they are. */
  #withParamsMasked<Event extends object>(event: Event): Event {
    return "params" in event ? { ...event, params: this.#redactor.maskAll(event.params) } : event;
  }
}

const MAX_WARNINGS = 200;

/** Warnings begin before a listener can be there, so the last of them are kept. */
export function keepWarnings(events: Emitter<HubEvents>): readonly HubEvents["warning"][] {
  const kept: HubEvents["warning"][] = [];
  events.on("mended", ({ failed }) => {
    for (let at = kept.length - 1; at >= 0; at -= 1) if (kept[at]?.failed === failed) kept.splice(at, 1);
  });
  events.on("warning", (warning) => {
    kept.push(warning);
    if (kept.length > MAX_WARNINGS) kept.shift();
  });
  return kept;
}

/** Events of the catalog become the hub's own, of in-process sources and servers alike. */
export function relayCatalog(catalog: Catalog, events: Emitter<HubEvents>): void {
  catalog.on("change", (change) => events.emit("catalog", change));
  catalog.on("warning", ({ source, message }) => events.emit("warning", { server: source, message }));
}
