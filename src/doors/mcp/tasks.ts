/**
 * Tasks of servers, in both generations: those of 2025-11-25, which a client asks for, and the extension of 2026, in which the server
 * decides. A client knows a task by an id that names its server and its tool, and that no other caller can use. Every request about a
 * task is a use of that tool on the one call path: its rules decide, the guard reads what comes, and the audit log has it.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import type { Hub } from "../../hub/hub.ts";
import type { ToolCapability } from "../../model/capability.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import { MISSING_CAPABILITY, TASKS_EXTENSION } from "../../model/protocol.ts";
import type { ClientSide } from "../../model/source.ts";
import type { Session } from "../../sessions/session.ts";
import { invalidParams } from "./rpc-messages.ts";

const RELATED_TASK = "io.modelcontextprotocol/related-task";
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
  readonly #byServer = new Map<
    string,
    { readonly server: string; readonly owner: string; readonly publicId: string }
  >();

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

  /** A server's report on a task, for the caller that it belongs to; undefined for others. */
  reportFor(session: Session, server: string, params: JsonObject): JsonObject | undefined {
    const task = this.#byServer.get(keyOf(server, String(params["taskId"])));
    return task?.owner === ownerOf(session) ? { ...params, taskId: task.publicId } : undefined;
  }

  /** The same for a report on the stream of a call, whose server is not told. */
  reportOnCall(session: Session, params: JsonObject): JsonObject | undefined {
    const servers = new Set([...this.#byServer.values()].map(({ server }) => server));
    return [...servers].map((server) => this.reportFor(session, server, params)).find((report) => report !== undefined);
  }

  #add(hub: Hub, session: Session, task: OwnTask): string {
    const key = keyOf(task.server, task.id);
    const publicId = publicTaskId(hub, session, task);
    const [oldest] = this.#byServer.keys();
    if (oldest !== undefined && this.#byServer.size >= MAX_TASKS && !this.#byServer.has(key))
      this.#byServer.delete(oldest);
    this.#byServer.set(key, { server: task.server, owner: ownerOf(session), publicId });
    return publicId;
  }
}

function keyOf(server: string, id: string): string {
  return JSON.stringify([server, id]);
}

export function isTaskReport(method: string): boolean {
  return method === "notifications/tasks/status" || method === "notifications/tasks";
}

/** Whether what a call returned is a task that goes on. */
export function beginsTask(result: JsonObject): boolean {
  return result["resultType"] === "task" || isJsonObject(result["task"]);
}

export function hasTasksExtension({ extensions }: Readonly<JsonObject>): boolean {
  return isJsonObject(extensions) && isJsonObject(extensions[TASKS_EXTENSION]);
}

/** A tool that runs tools hands on no task: its id would name the wrong tool. */
export function withoutTasks(client: ClientSide): ClientSide {
  const { extensions } = client.capabilities;
  if (!isJsonObject(extensions)) return client;
  const { [TASKS_EXTENSION]: _tasks, ...others } = extensions;
  // Its other members may be getters.
  return Object.create(client, {
    capabilities: { value: { ...client.capabilities, extensions: others } },
  }) as ClientSide;
}

/** For a client of the modern era that did not declare the extension. */
export const TASKS_NEEDED = {
  code: MISSING_CAPABILITY,
  message: `The client must declare the extension ${TASKS_EXTENSION} for this.`,
  data: { requiredCapabilities: { extensions: { [TASKS_EXTENSION]: {} } } },
};
