/** Entries for the store, with only what a test cares about spelt out. */
import type {
  StoredApproval,
  StoredAuditLine,
  StoredConversation,
  StoredPin,
  StoredSession,
} from "../../src/store/store.ts";

export function approval(id: string, rest: Partial<StoredApproval> = {}): StoredApproval {
  return {
    id,
    hub: "hub-1",
    status: "pending",
    request: { name: "files__write_file", arguments: { path: "a" } },
    askedAt: "2026-01-01T00:00:00.000Z",
    answer: null,
    answeredAt: null,
    answeredBy: null,
    ...rest,
  };
}

export function session(id: string, rest: Partial<StoredSession> = {}): StoredSession {
  return {
    id,
    hub: "hub-1",
    door: "mcp",
    role: null,
    user: null,
    client: null,
    owner: false,
    openedAt: "2026-01-01T00:00:00.000Z",
    closedAt: null,
    lastCallAt: null,
    calls: 0,
    taint: null,
    ...rest,
  };
}

export function auditLine(file: string, seq: number, rest: Partial<StoredAuditLine> = {}): StoredAuditLine {
  const time = rest.time ?? new Date(Date.UTC(2026, 0, 1, 0, 0, seq)).toISOString();
  return {
    file,
    chain: "chain-1",
    seq,
    line: JSON.stringify({ seq, time, text: "é\0" }),
    type: "call",
    time,
    callId: `call-${seq}`,
    session: "session-1",
    user: null,
    client: null,
    role: null,
    door: "mcp",
    name: "files__read_file",
    server: "files",
    outcome: "ok",
    event: null,
    ...rest,
  };
}

export function pin(server: string, tool: string, fingerprint = "sha256-1"): StoredPin {
  return { server, kind: "tool", tool, fingerprint, definition: { name: tool }, pinnedAt: "2026-01-01T00:00:00.000Z" };
}

export function conversation(id: string, rest: Partial<StoredConversation> = {}): StoredConversation {
  return {
    id,
    title: null,
    door: "acp",
    cwd: null,
    user: null,
    createdAt: "2026-01-01T00:00:00.000Z",
    updatedAt: "2026-01-01T00:00:00.000Z",
    facts: {},
    ...rest,
  };
}
