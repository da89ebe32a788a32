import type { AskRequest } from "../../../src/model/decision.ts";

/** A call that waits, as a hub lists it. */
export function askRequest(id: string, given: Partial<AskRequest> = {}): AskRequest {
  const rule = { level: "hub", list: "ask", pattern: "files__delete", where: "toolcrib.json" } as const;
  return {
    id,
    held: false,
    callId: `call-${id}`,
    session: { id: "s1", door: "mcp", user: "ops" },
    kind: "tool",
    name: "files__delete",
    origin: { source: "files", name: "delete" },
    arguments: { path: "notes.txt" },
    rule,
    rules: [rule],
    reason: "files__delete needs a yes.",
    expiresAt: "2026-11-16T12:00:00.000Z",
    ...given,
  };
}
