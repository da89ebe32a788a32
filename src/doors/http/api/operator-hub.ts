/** The parts of the hub that the operations need. */
import type { Approval, AuditVerdict, Overview, SessionDetail } from "../../../contract/activity.ts";
import type { PinInfo } from "../../../contract/catalog.ts";
import type { CheckedInput, OutputOf } from "../../../contract/operations.ts";
import type { ServerDetail } from "../../../contract/server.ts";
import type { SkillDetail, SkillInfo, SkillPlace } from "../../../contract/skill.ts";
import type { Hub } from "../../../hub/hub.ts";
import type { ChangedBy } from "../../../hub/pins/hub-pins.ts";
import type { PinChoice } from "../../../hub/pins/pins.ts";
import type { AskAnswer } from "../../../model/ask.ts";
import type { JsonObject } from "../../../model/json.ts";
import type { ServerInfo } from "../../../model/server-state.ts";
import type { Session } from "../../../sessions/session.ts";
import type { EventRecord } from "../../../telemetry/audit/record.ts";
import type { Shown } from "./shown.ts";

type Soon<Value> = Shown<Value> | Promise<Shown<Value>>;

interface ServerChange {
  /** Only if the entry still has this etag. */
  readonly ifMatch?: string;
}

export interface OperatorServers {
  addServer(id: string, config: JsonObject): Promise<ServerInfo>;
  updateServer(id: string, updates: JsonObject, options?: ServerChange): Promise<ServerInfo>;
  removeServer(id: string, options?: ServerChange): Promise<void>;
  server(id: string): Promise<Shown<ServerDetail> | undefined>;
  testServer(id: string | undefined, config: JsonObject, signal?: AbortSignal): Promise<Shown<OutputOf<"testServer">>>;
}

export interface OperatorSkills {
  get(id: string, options: { readonly session: Session }): { readonly id: string; readonly name: string } | undefined;
  instructions(id: string, options: { readonly session: Session }): Promise<string>;
  infos(session: Session): Soon<SkillInfo[]>;
  describe(id: string, session: Session): Promise<Shown<SkillDetail> | undefined>;
  places(): Promise<Shown<SkillPlace[]>>;
  scan(path: string): Promise<Shown<OutputOf<"scanSkills">>>;
  import(options: CheckedInput<"importSkills">): Promise<Shown<OutputOf<"importSkills">>>;
  remove(id: string): Promise<Shown<OutputOf<"removeSkill">>>;
}

type ChangedPins = OutputOf<"changePins">["changed"];

export interface OperatorPins {
  list(): Soon<PinInfo[]>;
  stateOf(source: string, tool: string): PinInfo["state"];
  approve(server: string, thing: PinChoice | undefined, by: ChangedBy): Promise<Shown<ChangedPins>>;
  reset(server: string, thing: PinChoice | undefined, by: ChangedBy): Promise<Shown<ChangedPins>>;
}

export interface OperatorAudit {
  /** Writes a record of something that was done. */
  note(record: Omit<EventRecord, "time">): void;
  query(input: CheckedInput<"listAudit">): Promise<Shown<OutputOf<"listAudit">>>;
  verify(): Promise<Shown<AuditVerdict>>;
  exportLines(input: CheckedInput<"listAudit">): AsyncIterable<string>;
}

export interface OperatorActivity {
  sessions(input: CheckedInput<"listSessions">): Soon<OutputOf<"listSessions">>;
  session(id: string): Shown<SessionDetail> | undefined | Promise<Shown<SessionDetail> | undefined>;
  approvals(input: CheckedInput<"listApprovals">): Soon<OutputOf<"listApprovals">>;
  approval(id: string): Shown<Approval> | undefined | Promise<Shown<Approval> | undefined>;
  closeSession(id: string): Promise<void>;
  answer(
    id: string,
    answer: AskAnswer,
    by: string | null,
    door: string,
    caller?: string,
  ): Promise<OutputOf<"answerApproval">>;
  overview(): Soon<Overview>;
}

type ExistingParts = Pick<
  Hub,
  | "call"
  | "config"
  | "connect"
  | "disconnect"
  | "explain"
  | "missing"
  | "openSession"
  | "quarantined"
  | "read"
  | "servers"
  | "session"
  | "sessions"
  | "view"
>;

export interface OperatorHub extends ExistingParts, OperatorServers {
  readonly skills: OperatorSkills;
  readonly pins: OperatorPins;
  readonly audit: OperatorAudit;
  readonly activity: OperatorActivity;
}
