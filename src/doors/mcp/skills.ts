/** The MCP skills extension: what a client lists, gets and walks through. Files are read like any resource. */
import type { Hub } from "../../hub/hub.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { JsonObject } from "../../model/json.ts";
import { encodeResult } from "./encode.ts";
import type { Encoded } from "./encoded.ts";
import { refuseCursor, textParam } from "./params.ts";
import type { Incoming } from "./incoming.ts";

export const SKILLS_EXTENSION = "io.modelcontextprotocol/skills";
export const SKILLS_CAPABILITY: JsonObject = { directoryRead: true };

export async function listSkills(hub: Hub, incoming: Incoming): Promise<Encoded> {
  const { params, method, session } = incoming;
  refuseCursor(params, method);
  await hub.settled();
  return complete(incoming, { skills: await hub.skills.entries(session) });
}

export async function getSkill(hub: Hub, incoming: Incoming): Promise<Encoded> {
  const { params, method, session } = incoming;
  const uri = textParam(params, "uri", method);
  const skill = await hub.skills.entry(session, uri);
  if (skill === undefined) throw new ToolcribError("not_found", `There is no skill ${uri}.`);
  return complete(incoming, { skill });
}

export function readDirectory(hub: Hub, incoming: Incoming): Encoded {
  const { params, method, session } = incoming;
  refuseCursor(params, method);
  return complete(incoming, { resources: hub.skills.directory(session, textParam(params, "uri", method)) });
}

/** Skills change without notice: a folder may be edited at any time. */
function complete({ id, era }: Incoming, result: JsonObject): Encoded {
  const modern = era === "modern" ? { resultType: "complete", ttlMs: 0, cacheScope: "private" } : {};
  return encodeResult(id, { ...modern, ...result });
}
