/** Sessions in the words of the page. */
import type { SessionInfo } from "../../../../src/contract/activity-schemas.ts";
import { t } from "../../messages/messages.ts";
import { sessionWords } from "../../messages/session-words.ts";

const DOOR_NAMES: Readonly<Record<string, string>> = { mcp: "MCP", acp: "ACP", rest: "REST", websocket: "WebSocket" };

export function doorWord(door: string): string {
  if (door === "cli") return t(sessionWords.commandLine);
  return door === "hub" ? t(sessionWords.hub) : (DOOR_NAMES[door] ?? door);
}

/** Who is behind a session, as far as that is known. */
type Named = Pick<SessionInfo, "user" | "role" | "owner"> & Partial<Pick<SessionInfo, "client">>;

export function whoText({ user, role, owner, client = null }: Named): string {
  if (user !== null) return user;
  if (client !== null) return client.title ?? client.name;
  if (role !== null) return t(sessionWords.unknownAs, { role });
  return t(owner ? sessionWords.hubUser : sessionWords.unknownUser);
}

/** The consequence of a taint, by `guard.taint`; empty while that is unknown. */
export function taintText(mode: unknown): string {
  if (mode === "off") return t(sessionWords.taintOff);
  if (mode === "ask") return t(sessionWords.taintAsk);
  return mode === "deny" ? t(sessionWords.taintDeny) : "";
}

export const STATES = [
  ["open", sessionWords.open],
  ["closed", sessionWords.closed],
  ["all", sessionWords.openAndClosed],
] as const;

export type SessionState = (typeof STATES)[number][0];

/** The filter in the address; open sessions if it is unknown. */
export function stateOf(text: string | undefined): SessionState {
  return STATES.find(([state]) => state === text)?.[0] ?? "open";
}

/** Doors to choose from: the usual ones, those in sight, and the one of the address. */
export function doorOptions(
  present: readonly Pick<SessionInfo, "door">[],
  asked: string | undefined,
): readonly (readonly [door: string, word: string])[] {
  const doors = new Set(["mcp", "rest", "websocket", ...present.map(({ door }) => door)]);
  if (asked !== undefined) doors.add(asked);
  return [...doors].map((door) => [door, doorWord(door)] as const);
}

/** Name and version are the client's own words. */
export function clientText({ name, version, transport, program, pid }: NonNullable<SessionInfo["client"]>): string {
  const facts = [transport, processText(pid, program)].filter((fact) => fact !== undefined).join(", ");
  const said = [name, version].filter((word) => word !== undefined).join(" ");
  return t(facts === "" ? sessionWords.calledItself : sessionWords.calledItselfWith, { name: said, facts });
}

function processText(pid: number | undefined, program: string | undefined): string | undefined {
  if (pid === undefined) return undefined;
  return program === undefined
    ? t(sessionWords.process, { pid: String(pid) })
    : t(sessionWords.processOf, { pid: String(pid), program });
}
