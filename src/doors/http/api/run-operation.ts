/** Runs operations of the contract: checks scope and input, calls the handler, records changes, masks the output. */
import { systemClock } from "../../../base/clock.ts";
import { type CheckedInput, type OperationName, OPERATIONS, type OutputOf } from "../../../contract/operations.ts";
import type { ConfigChange } from "../../../contract/change-schemas.ts";
import { auditKey } from "../../../model/caller.ts";
import { ToolcribError } from "../../../model/errors.ts";
import { isJsonObject } from "../../../model/json.ts";
import type { EventRecord } from "../../../telemetry/audit/record.ts";
import { joinEditorSession, namedSession, OpenedSessions } from "./caller-sessions.ts";
import { catalogHandlers } from "./catalog-handlers.ts";
import { ResourceSubscriptions } from "./resource-subscriptions.ts";
import { hubHandlers } from "./hub-handlers.ts";
import { loginHandlers } from "./login-handlers.ts";
import { missingScope } from "../http-access.ts";
import {
  type ApiParts,
  checkInput,
  type DeepReadonly,
  type HandlerParts,
  type Handlers,
  type OperationContext,
} from "./operation-handler.ts";
import { type Notify, Questions } from "./questions.ts";
import { resourceHandlers } from "./resource-handlers.ts";
import { settingsHandlers } from "./settings-handlers.ts";

const HANDLERS: Handlers = {
  ...hubHandlers,
  ...catalogHandlers,
  ...resourceHandlers,
  ...loginHandlers,
  ...settingsHandlers,
};

/** Results of tools went through the guard, and must not be changed again. */
const UNMASKED_OPERATIONS: ReadonlySet<OperationName> = new Set(["callTool", "readResource", "getPrompt"]);

/** Operations that run in the session of their input `session`. */
const SESSION_OPERATIONS: ReadonlySet<OperationName> = new Set<OperationName>([
  "listServers",
  "listTools",
  "callTool",
  "listResources",
  "readResource",
  "listPrompts",
  "getPrompt",
  "completeArgument",
  "followResource",
  "unfollowResource",
  "explainPolicy",
  "explainCall",
]);

export class Operations {
  readonly #parts: HandlerParts;
  /** Sends events about what a connection has asked for to that connection; nowhere until it is set. */
  notify: Notify = () => {};

  constructor(parts: ApiParts) {
    const notify: Notify = (event, to) => this.notify(event, to);
    this.#parts = {
      ...parts,
      opened: new OpenedSessions(parts.hub, parts.clock ?? systemClock, parts),
      questions: new Questions(notify),
      followed: new ResourceSubscriptions(parts.hub, notify),
    };
  }

  /** Ends the sessions that callers opened. */
  close(): void {
    this.#parts.opened.close();
    this.#parts.followed.close();
  }

  static has(name: string): name is OperationName {
    return Object.hasOwn(OPERATIONS, name);
  }

  /** Rejects with ToolcribError only. */
  async run(name: OperationName, input: unknown, context: OperationContext): Promise<unknown> {
    const { scope } = OPERATIONS[name];
    if (!context.caller.scopes.has(scope)) throw missingScope(scope);
    return this.runAuthorized(name, input, context);
  }

  /** For a door that has checked the operation's scope already, such as before it read a body. */
  async runAuthorized(name: OperationName, input: unknown, context: OperationContext): Promise<unknown> {
    const output = await this.#handle(name, input, context);
    return UNMASKED_OPERATIONS.has(name) ? output : this.#masked(output);
  }

  async #handle<Name extends OperationName>(name: Name, input: unknown, context: OperationContext): Promise<unknown> {
    const checked = checkInput(name, input);
    const output = await HANDLERS[name](checked, this.#within(name, checked, context), this.#parts);
    const record = auditRecord(name, checked, output, context);
    if (record !== undefined) this.#parts.hub.audit.note(record);
    return output;
  }

  #within(name: OperationName, input: object, context: OperationContext): OperationContext {
    if (!SESSION_OPERATIONS.has(name) || !("session" in input) || typeof input.session !== "string") return context;
    const { hub, opened } = this.#parts;
    const { caller } = context;
    const joining = joinEditorSession(hub.internals, caller, input.session);
    const session =
      joining === undefined
        ? namedSession(hub.internals, caller, input.session)
        : opened.join(caller, context.session, joining);
    if (session === undefined) {
      throw new ToolcribError("not_found", `No session ${input.session} of this caller is open.`, {
        hint: "POST /api/v1/sessions opens one. It ends half an hour after its last use, or with its WebSocket.",
      });
    }
    opened.used(session);
    return { ...context, session, asker: context.session };
  }

  /** A cursor has no secrets, and a masked one would not work. */
  #masked(output: unknown): unknown {
    const masked = this.#parts.redactor.maskAll(output);
    if (!isJsonObject(output) || !isJsonObject(masked) || output["nextCursor"] === undefined) return masked;
    return { ...masked, nextCursor: output["nextCursor"] };
  }
}

/** Changes by operators go into the audit log, which otherwise has only calls. */
type Change = Pick<EventRecord, "event" | "origin" | "name" | "details">;

type AuditedChanges = {
  readonly [Name in OperationName]?: (
    input: CheckedInput<Name>,
    output: DeepReadonly<OutputOf<Name>>,
  ) => Change | undefined;
};

/** More would make a record of its own size; the count says how many there were. */
const MAX_NAMED_SKILLS = 50;

const MAX_NAMED_CHANGES = 50;
const MAX_NAMED_PATTERNS = 20;

/** In words, without values: those of an entry may be secret. */
function changeText(change: ConfigChange): string {
  switch (change.kind) {
    case "rule": {
      const { verdict, patterns, role, serverId } = change;
      const more = patterns.length > MAX_NAMED_PATTERNS ? ` and ${patterns.length - MAX_NAMED_PATTERNS} more` : "";
      const at = role === undefined ? (serverId === undefined ? "" : ` at server ${serverId}`) : ` for role ${role}`;
      return `${verdict} ${patterns.slice(0, MAX_NAMED_PATTERNS).join(", ")}${more}${at}`;
    }
    case "role":
      return `${change.settings === null ? "remove role" : "role"} ${change.role}`;
    case "server":
      return change.updates === null
        ? `remove server ${change.serverId}`
        : `server ${change.serverId}: ${Object.keys(change.updates).join(", ")}`;
    case "token":
      return `add token named ${change.name} with ${change.scopes.join(", ")}`;
    case "revokeToken":
      return `revoke token named ${change.name}`;
  }
}

const serverChange = (event: string, id: string | undefined, details?: EventRecord["details"]): Change => ({
  event,
  origin: { source: id ?? "", name: id ?? "" },
  details,
});

/** Pins and approvals write their own records. Of entries only the keys are recorded. */
const AUDITED_CHANGES: AuditedChanges = {
  addServer: ({ serverId, config }) =>
    serverChange("server.added", serverId ?? config.id, { keys: Object.keys(config).filter((key) => key !== "id") }),
  updateServer: ({ serverId, updates }) => serverChange("server.changed", serverId, { keys: Object.keys(updates) }),
  removeServer: ({ serverId }) => serverChange("server.removed", serverId),
  overrideTool: (_input, { server, tool, override, saved }) =>
    saved
      ? { event: "tool.overridden", origin: { source: server, name: tool }, details: { keys: Object.keys(override) } }
      : undefined,
  connectClient: (_input, { id, file, changed }) =>
    changed ? { event: "client.connected", name: id, details: { file } } : undefined,
  disconnectClient: (_input, { id, file, changed }) =>
    changed ? { event: "client.disconnected", name: id, details: { file } } : undefined,
  setRecording: ({ server, minutes }) => ({
    event: minutes === 0 ? "recording.stopped" : "recording.started",
    origin: server === undefined ? undefined : { source: server, name: server },
    details: { minutes },
  }),
  changeConfig: ({ changes }, { saved, diffs }) =>
    saved
      ? {
          event: "config.changed",
          details: {
            places: diffs.map(({ where }) => where),
            changes: changes.slice(0, MAX_NAMED_CHANGES).map(changeText),
          },
        }
      : undefined,
  connectServer: ({ serverId }) => serverChange("server.connect", serverId),
  disconnectServer: ({ serverId }) => serverChange("server.disconnect", serverId),
  beginLogin: ({ serverId }) => serverChange("server.login_begun", serverId),
  finishLogin: (_input, { serverId }) => serverChange("server.logged_in", serverId),
  endLogin: ({ serverId }) => serverChange("server.logged_out", serverId),
  testServer: ({ serverId, config }) =>
    serverChange("server.tested", serverId ?? config.id, { keys: Object.keys(config) }),
  importSkills({ path, force, dryRun }, { imported, unchanged, failed }) {
    if (dryRun) return undefined;
    const skills = imported.slice(0, MAX_NAMED_SKILLS).map(({ skillId }) => skillId);
    const counts = { imported: imported.length, unchanged: unchanged.length, failed: failed.length };
    return { event: "skill.imported", name: path, details: { force, skills, ...counts } };
  },
  removeSkill: ({ skillId }) => ({ event: "skill.removed", name: skillId }),
  openSession: (_input, { sessionId, servers }) => ({
    event: "session.begun",
    name: sessionId,
    details: { servers: servers.map(({ name }) => name) },
  }),
  closeSession: ({ sessionId }) => ({ event: "session.ended", name: sessionId }),
  answerQuestion: ({ questionId, action }) => ({ event: "question.answered", name: questionId, details: { action } }),
};

/** The record of an operation that succeeded; undefined for those that change nothing. */
function auditRecord<Name extends OperationName>(
  name: Name,
  input: CheckedInput<Name>,
  output: DeepReadonly<OutputOf<Name>>,
  { caller, session }: OperationContext,
): EventRecord | undefined {
  const change = AUDITED_CHANGES[name]?.(input, output);
  if (change === undefined) return undefined;
  // Not every caller has a name, but every token and every login link has a key.
  const details = { ...change.details, by: auditKey(caller) };
  return { ...change, details, door: session.door, session: session.id, user: caller.user ?? null };
}
