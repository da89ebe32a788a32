/** Which answers of the hub are out of date after an event. */
import type { OperationName } from "../../../src/contract/operations.ts";
import type { EventName } from "../../../src/contract/websocket.ts";

const SERVERS: readonly OperationName[] = ["listServers", "getServer", "overview"];
const TOOLS: readonly OperationName[] = [
  "listTools",
  "listResources",
  "listPrompts",
  "listServers",
  "getServer",
  "overview",
  "getTokenCosts",
];
const SKILLS: readonly OperationName[] = [
  "listSkills",
  "getSkill",
  "getInstructions",
  "scanSkills",
  "listTools",
  "overview",
];
const APPROVALS: readonly OperationName[] = ["listApprovals", "getApproval", "overview"];
const CALLS: readonly OperationName[] = ["overview", "listSessions", "getSession"];

/** Every event is here (the audit log apart: its view follows by itself), so that a new one is thought about. An empty list: nothing that is kept depends on it. */
export const OUTDATED_BY: Readonly<Record<EventName, readonly OperationName[] | "everything">> = {
  "mcp.server.added": SERVERS,
  "mcp.server.removed": TOOLS,
  "mcp.server.changed": SERVERS,
  "mcp.server.connected": TOOLS,
  "mcp.server.disconnected": TOOLS,
  "mcp.server.error": SERVERS,
  "mcp.tools.discovered": TOOLS,
  "mcp.catalog.changed": TOOLS,
  "mcp.servers.list": [],
  "mcp.tools.list": [],
  "openclaw.skill.imported": SKILLS,
  "openclaw.batch.imported": SKILLS,
  "openclaw.import.list": [],
  "openclaw.import.removed": SKILLS,
  "skills.skill.imported": SKILLS,
  "skills.batch.imported": SKILLS,
  "skills.import.list": [],
  "skills.import.removed": SKILLS,
  "skills.changed": SKILLS,
  "approval.requested": APPROVALS,
  "approval.answered": APPROVALS,
  "call.started": CALLS,
  "call.finished": CALLS,
  "recording.changed": ["getRecording"],
  "guard.suspicious": ["overview"],
  "session.opened": ["listSessions", "overview", "getTokenCosts"],
  "session.closed": ["listSessions", "getSession", "overview", "getTokenCosts"],
  "session.notice": [],
  "session.server": [],
  "resource.updated": [],
  "question.asked": [],
  "question.closed": [],
  "extraTool.call": [],
  "extraTool.cancel": [],
  "pins.changed": ["listPins", "listTools", "overview"],
  "config.reloaded": "everything",
  warning: ["overview"],
  "events.lost": "everything",
};
