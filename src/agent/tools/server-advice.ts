/** What servers say of themselves, for a system prompt: their own instructions, and why some of them are not there. */
import { createHmac, randomBytes } from "node:crypto";
import { neutralise } from "../../guard/wrap/neutralise.ts";
import { wrapUntrusted } from "../../guard/wrap/wrap.ts";
import type { Hub } from "../../hub/hub.ts";
import { trustOf } from "../../hub/wiring.ts";
import type { ServerInfo } from "../../model/server-state.ts";
import type { Session } from "../../sessions/session.ts";
import { oneLine } from "./tool-words.ts";

/** Characters of one server, and of all. */
const LONGEST = 4000;
const LONGEST_OF_ALL = 16_000;
const LONGEST_REASON = 200;
const MOST_LINES = 20;

/** Known to nobody outside, and the same for the same text, because providers cache prompts. */
const key = randomBytes(32);

/** Undefined if none says anything. Of untrusted servers it stands between markers, like their results. */
export function serverAdvice(hub: Hub, session: Session): string | undefined {
  const isTrusted = trustOf(hub.config.servers);
  const parts: string[] = [];
  let room = LONGEST_OF_ALL;
  for (const { server, name, text } of hub.instructions(session)) {
    const cut = shortened(text.trim(), Math.min(LONGEST, room));
    if (cut === "") continue;
    room -= cut.length;
    const shown = isTrusted(server) ? cut : wrapped(cut, session, { server, tool: "instructions" });
    parts.push(`How the server ${oneLine(name, 60)} is to be used, in its own words:\n${shown}`);
  }
  return parts.length === 0 ? undefined : parts.join("\n\n");
}

function wrapped(text: string, session: Session, of: { readonly server: string; readonly tool: string }): string {
  const words = [session.id, of.server, of.tool, text].join(" ");
  const id = createHmac("sha256", key).update(words).digest("hex").slice(0, 32);
  return wrapUntrusted(text, { id, ...of });
}

function shortened(text: string, longest: number): string {
  if (text.length <= longest) return text;
  return longest < 2 ? "" : `${text.slice(0, longest - 1).toWellFormed()}…`;
}

/** A word on each server that the session should have and cannot use. */
export function absentServers(hub: Hub, session: Session): string[] {
  const isTrusted = trustOf(hub.config.servers);
  // What servers there are is told to whoever sees all of them.
  const shared = session.owner && session.role === undefined ? hub.servers() : [];
  const servers = [...session.own.servers(), ...shared];
  const failed = servers.filter(({ state }) => state === "failed" || state === "restarting");
  const lines = [
    ...servers.filter(({ state }) => state === "connecting").map(({ name }) => comingUp(name)),
    ...failed.map((server) => failureOf(server, session, isTrusted(server.id))),
    ...session.own.leftOut().map(({ name, reason }) => `${notThere(name)}: ${reason}.`),
  ];
  return lines.slice(0, MOST_LINES);
}

/** The reason mostly quotes the server: its answer, or the last lines of its stderr. */
function failureOf({ id, name, state, lastError }: ServerInfo, session: Session, isTrusted: boolean): string {
  const words = oneLine(neutralise(lastError ?? ""), LONGEST_REASON);
  if (words === "") return `${notThere(name)}: it is ${state}.`;
  if (isTrusted) return `${notThere(name)}: ${words.replace(/\.$/, "")}.`;
  return `${notThere(name)}. The reason, partly in its own words:\n${wrapped(words, session, { server: id, tool: "error" })}`;
}

function comingUp(server: string): string {
  return `The server ${oneLine(neutralise(server), 60)} is still connecting; its tools join when it is ready.`;
}

function notThere(server: string): string {
  return `The server ${oneLine(neutralise(server), 60)} is not available`;
}
