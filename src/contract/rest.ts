/** The operations over HTTP. Where an operation has a path parameter, it is the input of that name. */
import type { OperationName } from "./operations.ts";

/** How a program names itself: `name/version`. */
export const CLIENT_HEADER = "x-toolcrib-client";
/** The same in the query of a WebSocket, where browsers can set no header. */
export const CLIENT_PARAM = "client";
export const API_PATH = "/api/v1";
/** The description of the API, for programs and for people. */
export const API_DOCUMENT_PATH = `${API_PATH}/openapi.json`;
export const API_DOCS_PATH = "/api/docs";
/** The events of the WebSocket, as server-sent events. */
export const EVENTS_PATH = `${API_PATH}/events`;
export const SOCKET_PATH = "/ws";
/** Below `API_PATH`: the records of `listAudit` as lines. It takes the same inputs, except those of one page. */
export const AUDIT_EXPORT_PATH = "/audit/export";
export const EXCLUDED_EXPORT_INPUTS: readonly string[] = ["limit", "cursor", "order"];

export interface RestRoute {
  readonly operation: OperationName;
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  /** Below `/api/v1`; `{serverId}` is one segment. */
  readonly path: string;
  /**
   * Where the rest of the input comes from. `entry`: the body is the server's entry itself, with its `id`, or
   * `{serverId, config}`. `updates`: the body is the input `updates`. `arguments`: the body is `{arguments}` or `{args}`.
   */
  readonly from?: "query" | "body" | "entry" | "updates" | "arguments";
  readonly status?: 201;
}

export const REST_ROUTES = [
  { operation: "me", method: "GET", path: "/me" },
  { operation: "overview", method: "GET", path: "/overview" },
  { operation: "getStats", method: "GET", path: "/stats", from: "query" },
  { operation: "getTokenCosts", method: "GET", path: "/tokens" },
  { operation: "listServers", method: "GET", path: "/mcp/servers", from: "query" },
  { operation: "addServer", method: "POST", path: "/mcp/servers", from: "entry", status: 201 },
  { operation: "parseServers", method: "POST", path: "/mcp/servers/parse", from: "body" },
  { operation: "testServer", method: "POST", path: "/mcp/servers/test", from: "entry" },
  { operation: "getServer", method: "GET", path: "/mcp/servers/{serverId}" },
  { operation: "getServerProcess", method: "GET", path: "/mcp/servers/{serverId}/process" },
  { operation: "getServerLog", method: "GET", path: "/mcp/servers/{serverId}/log", from: "query" },
  { operation: "updateServer", method: "PATCH", path: "/mcp/servers/{serverId}", from: "updates" },
  { operation: "removeServer", method: "DELETE", path: "/mcp/servers/{serverId}" },
  { operation: "connectServer", method: "POST", path: "/mcp/servers/{serverId}/connect" },
  { operation: "disconnectServer", method: "POST", path: "/mcp/servers/{serverId}/disconnect", from: "body" },
  { operation: "listLogins", method: "GET", path: "/mcp/logins" },
  { operation: "finishLogin", method: "POST", path: "/mcp/logins/finish", from: "body" },
  { operation: "beginLogin", method: "POST", path: "/mcp/logins/{serverId}" },
  { operation: "endLogin", method: "DELETE", path: "/mcp/logins/{serverId}" },
  { operation: "listTools", method: "GET", path: "/mcp/tools", from: "query" },
  { operation: "listTools", method: "GET", path: "/mcp/tools/{serverId}", from: "query" },
  { operation: "callTool", method: "POST", path: "/mcp/tools/{toolName}/call", from: "arguments" },
  { operation: "overrideTool", method: "POST", path: "/mcp/overrides", from: "body" },
  { operation: "listResources", method: "GET", path: "/mcp/resources", from: "query" },
  { operation: "readResource", method: "POST", path: "/mcp/resources/read", from: "body" },
  { operation: "followResource", method: "POST", path: "/mcp/resources/follow", from: "body" },
  { operation: "unfollowResource", method: "POST", path: "/mcp/resources/unfollow", from: "body" },
  { operation: "listPrompts", method: "GET", path: "/mcp/prompts", from: "query" },
  { operation: "getPrompt", method: "POST", path: "/mcp/prompts/{promptName}/get", from: "body" },
  { operation: "completeArgument", method: "POST", path: "/mcp/complete", from: "body" },
  { operation: "listQuestions", method: "GET", path: "/questions" },
  { operation: "answerQuestion", method: "POST", path: "/questions/{questionId}", from: "body" },
  { operation: "listSkills", method: "GET", path: "/skills", from: "query" },
  { operation: "skillPlaces", method: "GET", path: "/skills/places" },
  { operation: "scanSkills", method: "POST", path: "/skills/scan", from: "body" },
  { operation: "importSkills", method: "POST", path: "/skills/import", from: "body" },
  { operation: "getSkill", method: "GET", path: "/skills/{skillId}" },
  { operation: "removeSkill", method: "DELETE", path: "/skills/{skillId}" },
  { operation: "getInstructions", method: "GET", path: "/skills/{skillId}/instructions" },
  { operation: "listSessions", method: "GET", path: "/sessions", from: "query" },
  { operation: "openSession", method: "POST", path: "/sessions", from: "body", status: 201 },
  { operation: "getSession", method: "GET", path: "/sessions/{sessionId}" },
  { operation: "closeSession", method: "DELETE", path: "/sessions/{sessionId}" },
  { operation: "listTaint", method: "GET", path: "/taint" },
  { operation: "clearTaint", method: "POST", path: "/taint/clear", from: "body" },
  { operation: "listApprovals", method: "GET", path: "/approvals", from: "query" },
  { operation: "getApproval", method: "GET", path: "/approvals/{approvalId}" },
  { operation: "answerApproval", method: "POST", path: "/approvals/{approvalId}", from: "body" },
  { operation: "listPins", method: "GET", path: "/pins", from: "query" },
  { operation: "changePins", method: "POST", path: "/pins", from: "body" },
  { operation: "explainPolicy", method: "GET", path: "/policy/explain", from: "query" },
  { operation: "explainCall", method: "POST", path: "/policy/explain", from: "body" },
  { operation: "getConfig", method: "GET", path: "/config" },
  { operation: "changeConfig", method: "POST", path: "/config", from: "body" },
  { operation: "listRoles", method: "GET", path: "/config/roles" },
  { operation: "listTokens", method: "GET", path: "/config/tokens" },
  { operation: "clientSnippets", method: "GET", path: "/clients" },
  { operation: "connectClient", method: "POST", path: "/clients/{clientId}/connect" },
  { operation: "disconnectClient", method: "POST", path: "/clients/{clientId}/disconnect" },
  { operation: "listAudit", method: "GET", path: "/audit", from: "query" },
  { operation: "getRecording", method: "GET", path: "/audit/recording" },
  { operation: "setRecording", method: "POST", path: "/audit/recording", from: "body" },
  { operation: "listPassages", method: "GET", path: "/audit/{callId}/passages" },
  { operation: "verifyAudit", method: "GET", path: "/audit/verify" },
] as const satisfies readonly RestRoute[];

/** The page that asks whether to use a link of a notice. What it is about is after the `#`. */
export const ANSWER_PAGE_PATH = "/answer";

/** Addresses of the page's views. The hub answers each with the same document; what is below them as well. */
export const PAGE_PATHS = [
  "/",
  "/servers",
  "/tools",
  "/traffic",
  "/resources",
  "/prompts",
  "/logins",
  "/oauth/callback",
  "/skills",
  "/approvals",
  "/sessions",
  "/audit",
  "/settings",
  "/help",
  ANSWER_PAGE_PATH,
] as const;
