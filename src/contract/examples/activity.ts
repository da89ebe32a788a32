import type { Approval, SessionInfo } from "../activity.ts";
import type { Examples } from "./example.ts";
import { FILES } from "./servers.ts";

const SESSION: SessionInfo = {
  id: "5f0c2e9e-3a60-4a1b-9a53-0a6f3f1f2b11",
  door: "mcp",
  role: "reviewer",
  user: "ada",
  owner: false,
  openedAt: "2026-11-16T08:00:00.000Z",
  closedAt: null,
  lastCallAt: "2026-11-16T08:20:00.000Z",
  calls: 12,
  running: 0,
  toolCount: 9,
  taint: null,
};

const RULE = { level: "hub", list: "ask", pattern: "*__write_*", where: "/home/ada/toolcrib.json" };

const APPROVAL: Approval = {
  id: "0d9f1c52-93cb-4f0e-8f58-1f3f9f0a8a77",
  status: "pending",
  held: false,
  callId: "c_01",
  session: { id: SESSION.id, door: "mcp", role: "reviewer", user: "ada" },
  kind: "tool",
  name: "files__write_file",
  origin: { source: "files", name: "write_file" },
  arguments: { path: "notes.txt", content: "Buy milk." },
  rule: RULE,
  rules: [RULE],
  reason: 'files__write_file needs a yes, because of ask "*__write_*".',
  askedAt: "2026-11-16T08:20:00.000Z",
  expiresAt: "2026-11-16T08:25:00.000Z",
  answer: null,
  answeredAt: null,
  answeredBy: null,
};

export const ACTIVITY_EXAMPLES: Examples<
  | "overview"
  | "listSessions"
  | "openSession"
  | "getSession"
  | "closeSession"
  | "listApprovals"
  | "getApproval"
  | "answerApproval"
  | "listAudit"
  | "verifyAudit"
> = {
  overview: {
    input: {},
    output: {
      version: "0.1.0",
      startedAt: "2026-11-16T08:00:00.000Z",
      store: "sqlite",
      servers: { ready: 3, failed: 1 },
      tools: 42,
      skills: 5,
      sessions: 2,
      pendingApprovals: 1,
      minutes: [{ at: "2026-11-16T08:20:00.000Z", calls: 4, failed: 1, p50: 31, p95: 120 }],
      denials: [
        {
          at: "2026-11-16T08:19:00.000Z",
          callId: "c_00",
          name: "files__write_file",
          server: "files",
          outcome: "denied",
          findings: [],
        },
      ],
      findings: [],
      warnings: [],
    },
  },
  listSessions: { input: { door: "mcp" }, output: { sessions: [SESSION], total: 1 } },
  openSession: {
    input: { servers: { wiki: { url: "https://wiki.example.com/mcp" } }, waitMs: 2000 },
    output: {
      id: SESSION.id,
      sessionId: SESSION.id,
      servers: [
        {
          ...FILES,
          id: "wiki@5f0c2e9e",
          name: "wiki",
          transport: "http",
          state: "failed",
          status: "error",
          toolCount: 0,
          serverVersion: null,
          connectedAt: null,
          lastError: "wiki.example.com answered with status 401",
          origin: { file: "session", dialect: "toolcrib" },
        },
      ],
      notices: [
        { level: "warning", message: "wiki failed: wiki.example.com answered with status 401.", server: "wiki" },
      ],
    },
  },
  getSession: {
    input: { sessionId: SESSION.id },
    output: { session: { ...SESSION, tools: ["files__read_text_file"], activeSkills: [], servers: [], notices: [] } },
  },
  closeSession: { input: { sessionId: SESSION.id }, output: { sessionId: SESSION.id } },
  listApprovals: { input: {}, output: { approvals: [APPROVAL], total: 1 } },
  getApproval: { input: { approvalId: APPROVAL.id }, output: { approval: APPROVAL } },
  answerApproval: {
    input: { approvalId: APPROVAL.id, answer: "once" },
    output: { id: APPROVAL.id, answer: "once" },
  },
  listAudit: {
    input: { since: "1h", server: "files", outcome: "failed" },
    output: {
      entries: [
        {
          type: "call",
          time: "2026-11-16T08:19:00.000Z",
          chain: "20261116T080000-4242",
          seq: 17,
          hash: "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
          callId: "c_00",
          session: SESSION.id,
          role: "reviewer",
          user: "ada",
          door: "mcp",
          kind: "tool",
          name: "files__write_file",
          origin: { source: "files", name: "write_file" },
          decision: "deny",
          outcome: "denied",
          durationMs: 0.4,
          resultBytes: 0,
        },
      ],
    },
  },
  verifyAudit: { input: {}, output: { ok: true, records: 1200, chains: 3, problems: [] } },
};
