/** The handshake with clients: versions, capabilities, instructions, and the envelope of modern requests. */
import type { Hub } from "../../hub/hub.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import {
  CLIENT_CAPABILITIES_KEY,
  type Era,
  INVALID_PARAMS,
  LATEST_LEGACY_VERSION,
  LEGACY_VERSIONS,
  MODERN_VERSION,
  type RpcError,
  type RpcRequest,
  TASKS_EXTENSION,
  UNSUPPORTED_VERSION,
  VERSION_KEY,
} from "../../model/protocol.ts";
import { VERSION } from "../../model/version.ts";
import type { Session } from "../../sessions/session.ts";
import { metaOf } from "./rpc-messages.ts";
import { SKILLS_CAPABILITY, SKILLS_EXTENSION } from "./shared-requests.ts";
import { haveTasks } from "./tasks.ts";

export const SERVER_INFO: JsonObject = { name: "toolcrib", title: "Toolcrib", version: VERSION };
export const SUPPORTED_VERSIONS: readonly string[] = [MODERN_VERSION, ...LEGACY_VERSIONS];

/** As of 2025-11-25. */
const TASKS: JsonObject = { list: {}, cancel: {}, requests: { tools: { call: {} } } };

export function negotiateVersion(wanted: unknown): string {
  return LEGACY_VERSIONS.find((version) => version === wanted) ?? LATEST_LEGACY_VERSION;
}

/** Everything is declared from the start, because servers that have it may come later. */
export function serverCapabilities(hub: Hub, session: Session, era: Era): JsonObject {
  const view = hub.view(session);
  const visible = new Set([...view.tools, ...view.resources, ...view.prompts].map(({ origin }) => origin.source));
  const servers = hub.servers.list().filter(({ id }) => visible.has(id));
  const declared = servers.map(({ capabilities }) => capabilities);
  const { [TASKS_EXTENSION]: _tasks, ...extensions } = mergeDeclared("extensions", declared)["extensions"] ?? {};
  const hasTasks = haveTasks(servers);
  return {
    tools: { listChanged: true },
    resources: { subscribe: true, listChanged: true },
    prompts: { listChanged: true },
    completions: {},
    logging: {},
    // Of either generation: what the other side has is translated.
    ...(era === "legacy" && hasTasks ? { tasks: TASKS } : {}),
    ...mergeDeclared("experimental", declared),
    // In the place of what servers declare: their skills are offered as the hub's.
    extensions: {
      ...extensions,
      ...(era === "modern" && hasTasks ? { [TASKS_EXTENSION]: {} } : {}),
      [SKILLS_EXTENSION]: SKILLS_CAPABILITY,
    },
  };
}

function mergeDeclared<Key extends string>(key: Key, declared: readonly JsonObject[]): { [key in Key]?: JsonObject } {
  const members = declared.flatMap((capabilities) => {
    const value = capabilities[key];
    return isJsonObject(value) ? Object.entries(value) : [];
  });
  // A computed key of a type parameter has no type of its own.
  return (members.length === 0 ? {} : { [key]: Object.fromEntries(members) }) as { [key in Key]?: JsonObject };
}

/** The part of a client's capabilities that is forwarded to servers. */
export function forwardedCapabilities(capabilities: unknown): JsonObject {
  if (!isJsonObject(capabilities)) return {};
  // A server's questions reach the client as they are, never as tasks of the client.
  const { tasks: _tasks, ...rest } = capabilities;
  return rest;
}

/** The words of one view or one server alone are given as they are; those of several, and active skills, under their names. */
export async function instructionsFor(hub: Hub, session: Session): Promise<string | undefined> {
  const nothing = hub.internals.unknownScope(session);
  if (nothing !== undefined) return nothing;
  const active = await hub.skills.active(session);
  const skills = active.map(({ name, instructions }) => ({ name: `Skill: ${name}`, text: instructions }));
  const views = hub.internals.viewInstructions(session);
  const given = [...views, ...hub.internals.instructions(session), ...skills];
  const [only] = given;
  if (only === undefined) return undefined;
  const isPlain = views.length === 1 || (skills.length === 0 && hub.servers.list().length === 1);
  if (given.length === 1 && isPlain) return only.text;
  return given.map(({ name, text }) => `# ${name}\n\n${text.trim()}`).join("\n\n");
}

/**
 * Checks the `_meta` that every modern request carries; undefined if it is valid.
 * @param objection What else speaks against the version that the request names; comes before whether we have it.
 */
export function envelopeError(
  { params }: RpcRequest,
  objection?: (version: string) => RpcError | undefined,
): RpcError | undefined {
  const meta = metaOf(params);
  const version = meta[VERSION_KEY];
  if (typeof version !== "string") return missingMeta(VERSION_KEY);
  const objected = objection?.(version);
  if (objected !== undefined) return objected;
  if (version !== MODERN_VERSION) return unsupportedVersion(version);
  return isJsonObject(meta[CLIENT_CAPABILITIES_KEY]) ? undefined : missingMeta(CLIENT_CAPABILITIES_KEY);
}

export function unsupportedVersion(requested: string): RpcError {
  const data = { supported: SUPPORTED_VERSIONS, requested };
  return { code: UNSUPPORTED_VERSION, message: "Unsupported protocol version", data };
}

function missingMeta(key: string): RpcError {
  return { code: INVALID_PARAMS, message: `Invalid params: _meta["${key}"] is missing or of the wrong type.` };
}
