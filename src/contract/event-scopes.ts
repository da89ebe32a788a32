/** Who gets which event, apart from the fields of events: a hub has them from its start, and their schemas take time to make. */

/**
 * `read` events are only about what the receiver may see, `admin` ones go to operators alone, `approve` ones also to those who
 * may answer.
 */
type EventScope = "read" | "approve" | "admin";

export const EVENT_SCOPES = {
  "mcp.server.added": "read",
  "mcp.server.removed": "read",
  "mcp.server.changed": "read",
  "mcp.server.connected": "read",
  "mcp.server.disconnected": "read",
  "mcp.server.error": "read",
  "mcp.tools.discovered": "read",
  "mcp.catalog.changed": "read",
  "mcp.servers.list": "read",
  "mcp.tools.list": "read",
  "openclaw.skill.imported": "read",
  "openclaw.batch.imported": "read",
  "openclaw.import.list": "read",
  "openclaw.import.removed": "read",
  "skills.skill.imported": "read",
  "skills.batch.imported": "read",
  "skills.import.list": "read",
  "skills.import.removed": "read",
  "skills.changed": "read",
  "approval.requested": "approve",
  "approval.answered": "approve",
  "call.started": "admin",
  "call.finished": "admin",
  "recording.changed": "admin",
  "guard.suspicious": "admin",
  "session.opened": "admin",
  "session.closed": "admin",
  "session.notice": "read",
  "session.server": "read",
  "resource.updated": "read",
  "question.asked": "read",
  "question.closed": "read",
  "extraTool.call": "read",
  "extraTool.cancel": "read",
  "pins.changed": "admin",
  "config.reloaded": "admin",
  warning: "admin",
  "events.lost": "read",
} as const satisfies Readonly<Record<string, EventScope>>;

export type EventName = keyof typeof EVENT_SCOPES;
