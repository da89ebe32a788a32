/** Sessions in the words of the page. */
import type { SessionInfo } from "../../../../src/contract/activity-schemas.ts";

const DOOR_WORDS: Readonly<Record<string, string>> = {
  mcp: "MCP",
  acp: "ACP",
  rest: "REST",
  websocket: "WebSocket",
  cli: "Command line",
  hub: "Hub",
};

export function doorWord(door: string): string {
  return DOOR_WORDS[door] ?? door;
}

/** Who is behind a session, as far as that is known. */
export function whoText({ user, role, owner }: Pick<SessionInfo, "user" | "role" | "owner">): string {
  if (user !== null) return user;
  if (role !== null) return `Unknown user as ${role}`;
  return owner ? "The hub's user" : "Unknown user";
}

/** What a taint leads to, by `guard.taint`; nothing is claimed while that is not known. */
export function taintText(mode: unknown): string {
  if (mode === "off") return "It is only recorded: guard.taint is off.";
  if (mode === "ask") return "From then on, tools that destroy or send out data need approval.";
  return mode === "deny" ? "From then on, tools that destroy or send out data are refused." : "";
}

export const STATES = [
  ["open", "Open"],
  ["closed", "Closed"],
  ["all", "Open and closed"],
] as const;

export type SessionState = (typeof STATES)[number][0];

/** What the address says; open ones if it says nothing known. */
export function stateOf(text: string | undefined): SessionState {
  return STATES.find(([state]) => state === text)?.[0] ?? "open";
}

/** Doors to choose from: the usual ones, those in sight, and the one of the address. */
export function doorOptions(
  sessions: readonly Pick<SessionInfo, "door">[],
  asked: string | undefined,
): readonly (readonly [door: string, word: string])[] {
  const doors = new Set(["mcp", "rest", "websocket", ...sessions.map(({ door }) => door)]);
  if (asked !== undefined) doors.add(asked);
  return [...doors].map((door) => [door, doorWord(door)] as const);
}
