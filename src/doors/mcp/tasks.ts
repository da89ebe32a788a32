/**
 * Tasks of servers, in both generations: those of 2025-11-25, which a client asks for, and the extension of 2026, in which the server
 * decides. A client knows a task by an id that names its server and its tool, and that no other caller can use. Every request about a
 * task is a use of that tool on the one call path: its rules decide, the guard reads what comes, and the audit log has it. Where client
 * and server are of different generations, src/upstream/task-forms.ts translates.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import type { Hub } from "../../hub/hub.ts";
import type { ToolCapability } from "../../model/capability.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import { type Era, MODERN_REPORT, RELATED_TASK, TASKS_EXTENSION } from "../../model/protocol.ts";
import type { ServerInfo } from "../../model/server-state.ts";
import type { ClientSide, ServerRequestContext } from "../../model/source.ts";
import type { Session } from "../../sessions/session.ts";
import { tasksOf, toLegacy } from "../../upstream/task-forms.ts";
import { invalidParams } from "./rpc-messages.ts";

const MAC_LENGTH = 32;
/** Of one door; the oldest are forgotten, which ends their status notifications and their place in `tasks/list`. */
const MAX_TASKS = 10_000;

/** A task as its server knows it. */
export interface OwnTask {
  readonly server: string;
  /** The server's own name of the tool. */
  readonly tool: string;
  readonly id: string;
}

/** The caller of a session, whatever connection it uses. */
function ownerOf({ owner, user, caller }: Session): string {
  return JSON.stringify(user === undefined ? [owner, caller ?? null] : [owner, null, user]);
}

function macOf(hub: Hub, session: Session, payload: string): string {
  const mac = createHmac("sha256", hub.internals.taskKey())
    .update(`${payload}\n${ownerOf(session)}`)
    .digest("base64url");
  return mac.slice(0, MAC_LENGTH);
}

function publicTaskId(hub: Hub, session: Session, { server, tool, id }: OwnTask): string {
  const payload = Buffer.from(JSON.stringify([server, tool, id])).toString("base64url");
  return `${payload}.${macOf(hub, session, payload)}`;
}

/** Throws for an id that was not given to this caller. */
export function ownTask(hub: Hub, session: Session, taskId: string): OwnTask {
  const [payload = "", mac = "", ...rest] = taskId.split(".");
  const expected = Buffer.from(macOf(hub, session, payload));
  const given = Buffer.from(mac);
  if (rest.length > 0 || given.length !== expected.length || !timingSafeEqual(given, expected)) throw unknownTask();
  const [server, tool, id] = JSON.parse(Buffer.from(payload, "base64url").toString()) as [string, string, string];
  return { server, tool, id };
}

export function unknownTask(): Error {
  return invalidParams("There is no such task.");
}

/** The tool that a task belongs to, if the session may still see it. */
export function toolOfTask(hub: Hub, session: Session, { server, tool }: OwnTask): ToolCapability {
  const found = hub.view(session).tools.find(({ origin }) => origin.source === server && origin.name === tool);
  if (found === undefined) throw unknownTask();
  return found;
}

/** The tasks of a door's clients, for those that a server reports by itself. */
export class KnownTasks {
  /** By server, its own id and the caller: each user may have a process of the server, and processes number their tasks. */
  readonly #byServer = new Map<string, { readonly owner: string; readonly publicId: string }>();
  /** By public id; called when a server has reported on the task. */
  readonly #followers = new Map<string, Set<() => void>>();

  /** The tasks of this caller, newest last. */
  of(session: Session): string[] {
    const owner = ownerOf(session);
    return [...this.#byServer.values()].filter((task) => task.owner === owner).map(({ publicId }) => publicId);
  }

  /** A result with the ids of tasks as this client knows them. */
  inResult(hub: Hub, session: Session, { origin }: ToolCapability, result: JsonObject): JsonObject {
    const rename = (id: string): string => this.#add(hub, session, { server: origin.source, tool: origin.name, id });
    const { task, taskId, _meta: meta } = result;
    const related = isJsonObject(meta) ? meta[RELATED_TASK] : undefined;
    return {
      ...result,
      ...(typeof taskId === "string" ? { taskId: rename(taskId) } : {}),
      ...(isJsonObject(task) && typeof task["taskId"] === "string"
        ? { task: { ...task, taskId: rename(task["taskId"]) } }
        : {}),
      ...(isJsonObject(meta) && isJsonObject(related) && typeof related["taskId"] === "string"
        ? { _meta: { ...meta, [RELATED_TASK]: { ...related, taskId: rename(related["taskId"]) } } }
        : {}),
    };
  }

  /** Reports on this task from now on, until the returned function is called. */
  follow(hub: Hub, session: Session, task: OwnTask, reported: () => void): () => void {
    const publicId = this.#add(hub, session, task);
    const followers = this.#followers.get(publicId) ?? new Set();
    this.#followers.set(publicId, followers.add(reported));
    return () => {
      followers.delete(reported);
      if (followers.size === 0) this.#followers.delete(publicId);
    };
  }

  /** Who is to be called when a server has reported on a task of this caller. */
  followersOf(session: Session, server: string, { taskId }: JsonObject): Iterable<() => void> {
    const task = this.#byServer.get(keyOf(session, server, String(taskId)));
    return this.#followers.get(task?.publicId ?? "") ?? [];
  }

  /** The report for a client of 2025-11-25 that the task belongs to; undefined for others. */
  reportFor(session: Session, server: string, method: string, params: JsonObject): JsonObject | undefined {
    const task = this.#byServer.get(keyOf(session, server, String(params["taskId"])));
    if (task === undefined) return undefined;
    // Only the call path, on which the guard reads, may bring a result or words of the server: `tasks/get` has them.
    const report = method === MODERN_REPORT ? toLegacy(params) : params;
    const kept = REPORTED.flatMap((key) => (isState(report[key]) ? [[key, report[key]] as const] : []));
    return { ...Object.fromEntries(kept), taskId: task.publicId };
  }

  #add(hub: Hub, session: Session, task: OwnTask): string {
    const key = keyOf(session, task.server, task.id);
    const publicId = publicTaskId(hub, session, task);
    const [oldest] = this.#byServer.keys();
    if (oldest !== undefined && this.#byServer.size >= MAX_TASKS && !this.#byServer.has(key))
      this.#byServer.delete(oldest);
    this.#byServer.set(key, { owner: ownerOf(session), publicId });
    return publicId;
  }
}

function keyOf(session: Session, server: string, id: string): string {
  return JSON.stringify([server, id, ownerOf(session)]);
}

const REPORTED = ["status", "createdAt", "lastUpdatedAt", "ttl", "pollInterval"];

/** A number, none, or a text that is too short for a message: a state, or a time. */
function isState(value: unknown): boolean {
  return typeof value === "number" || value === null || (typeof value === "string" && STATE.test(value));
}

const STATE = /^(?:[\w.:-]{1,20}|\d{4}-[\dT:.Z+-]{1,32})$/;

/** Whether what a call returned is a task that goes on. */
export function beginsTask(result: JsonObject): boolean {
  return result["resultType"] === "task" || isJsonObject(result["task"]);
}

export function hasTasksExtension({ extensions }: Readonly<JsonObject>): boolean {
  return isJsonObject(extensions) && isJsonObject(extensions[TASKS_EXTENSION]);
}

/** The generation of tasks that a client understands. */
export function tasksOfClient(era: Era, { capabilities }: ClientSide): Era | "none" {
  return era === "legacy" || hasTasksExtension(capabilities) ? era : "none";
}

/** Whether any of these servers has tasks, of whatever generation. */
export function haveTasks(servers: readonly ServerInfo[]): boolean {
  return servers.some((server) => tasksOfServer(server) !== undefined);
}

function tasksOfServer({ era, capabilities }: ServerInfo): Era | undefined {
  return era === null ? undefined : tasksOf({ era, capabilities });
}

const withSupport = new WeakMap<readonly ToolCapability[], Map<string, readonly ToolCapability[]>>();

/** A client of 2025-11-25 begins tasks of those tools only that say so, and those of servers of the extension do not. */
export function withTaskSupport(hub: Hub, tools: readonly ToolCapability[]): readonly ToolCapability[] {
  const servers = hub.servers.list().filter((server) => tasksOfServer(server) === "modern");
  if (servers.length === 0) return tools;
  const ids = new Set(servers.map(({ id }) => id));
  const key = JSON.stringify([...ids]);
  // The same list as long as nothing changes: lists are encoded once.
  const made = withSupport.get(tools) ?? new Map<string, readonly ToolCapability[]>();
  withSupport.set(tools, made);
  let list = made.get(key);
  if (list === undefined) {
    list = tools.map((tool) => {
      if (!ids.has(tool.origin.source)) return tool;
      return { ...tool, definition: { ...tool.definition, execution: { taskSupport: "optional" } } };
    });
    made.set(key, list);
  }
  return list;
}

/** The client with the task named in each question about it, as 2025-11-25 wants it. */
export function askingForTask(client: ClientSide, taskId: string): ClientSide {
  const { sample, elicit } = client;
  type Ask = (params: JsonObject, context: ServerRequestContext) => Promise<JsonObject>;
  const related = (ask: Ask | undefined): Ask | undefined =>
    ask &&
    ((params, context) => {
      const meta = isJsonObject(params["_meta"]) ? params["_meta"] : {};
      return ask({ ...params, _meta: { ...meta, [RELATED_TASK]: { taskId } } }, context);
    });
  return { ...client, sample: related(sample), elicit: related(elicit) };
}
