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
type Named = Pick<SessionInfo, "user" | "role" | "owner"> & Partial<Pick<SessionInfo, "client">>;

export function whoText({ user, role, owner, client = null }: Named): string {
  if (user !== null) return user;
  if (client !== null) return client.title ?? client.name;
  if (role !== null) return `Unknown user as ${role}`;
  return owner ? "The hub's user" : "Unknown user";
}

/** The consequence of a taint, by `guard.taint`; empty while that is unknown. */
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

/** The filter in the address; open sessions if it is unknown. */
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

/** Name and version are the client's own words. */
export function clientText({ name, version, transport, program, pid }: NonNullable<SessionInfo["client"]>): string {
  const process = pid === undefined ? undefined : `process ${pid}${program === undefined ? "" : ` of ${program}`}`;
  const facts = [transport, process].filter((fact) => fact !== undefined).join(", ");
  const said = [name, version].filter((word) => word !== undefined).join(" ");
  return facts === "" ? `calls itself ${said}` : `calls itself ${said} (${facts})`;
}
