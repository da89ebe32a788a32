/** Entries for the store, with only what a test cares about spelt out. */
import type { AuditText } from "../../src/model/audit-blocks.ts";
import type { StoredApproval, StoredConversation, StoredPin, StoredSession } from "../../src/store/store.ts";

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

export function auditLine(number: number): string {
  return JSON.stringify({ number, text: "é\0" });
}

/** The lines from this one on, a second after each other. */
export function auditBlock(file: string, firstLine: number, lines: number | readonly string[] = 1): AuditText {
  const all = typeof lines === "number" ? Array.from({ length: lines }, (_, n) => auditLine(firstLine + n)) : lines;
  const text = all.map((line) => `${line}\n`).join("");
  const time = (number: number): string => new Date(Date.UTC(2026, 0, 1, 0, 0, number)).toISOString();
  const times = { firstTime: time(firstLine), lastTime: time(firstLine + all.length - 1) };
  return { file, chain: "chain-1", firstLine, lines: all.length, bytes: Buffer.byteLength(text), ...times, text };
}

/** A file that becomes several blocks, small ones, and one with what is no record. */
export function formerLines(): Readonly<Record<string, readonly string[]>> {
  const lines = (file: string, count: number): string[] =>
    Array.from({ length: count }, (_, n) => {
      const time = new Date(Date.UTC(2026, 0, 2, 0, 0, n)).toISOString();
      return JSON.stringify({ seq: n, prev: null, type: "call", time, name: `${file} it's é ${"x".repeat(400)}` });
    });
  const name = "20260101T000000.000Z-1-0123456789abcdef.jsonl";
  return {
    a: lines("a", 1700),
    b: lines("b", 3),
    c: lines("c", 501).with(7, "\0nonsense").with(500, ""),
    [name]: [""],
  };
}

/** Turns the audit log of a store into one of version 9, which had a row for each line, and fills it with these files. */
export function formerAudit(
  files: Readonly<Record<string, readonly string[]>>,
  { columns = "client text" } = {},
): string {
  const quote = (text: string): string => `'${text.replaceAll("'", "''")}'`;
  const rows = Object.entries(files).flatMap(([file, lines]) =>
    lines.map((line, seq) => {
      // As databases hold what they cannot hold as it is.
      const stored = line.includes("\0") ? `\u0001${JSON.stringify(line)}` : line;
      const time = /"time":"([^"]+)"/.exec(line)?.[1];
      const [type, at] = time === undefined ? ["damaged", "2026-01-01T00:00:00.000Z"] : ["call", time];
      return `insert into audit (file, seq, chain, line, type, time) values (${quote(file)}, ${seq}, 'chain-1', ${quote(stored)}, '${type}', '${at}')`;
    }),
  );
  const counts = Object.entries(files).map(([file, lines]) => {
    const bytes = lines.reduce((sum, line) => sum + Buffer.byteLength(line) + 1, 0);
    const times = "'2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.000Z'";
    return `insert into audit_files (file, chain, bytes, lines, last_seq, first_time, last_time) values (${quote(file)}, 'chain-1', ${bytes}, ${lines.length}, ${lines.length - 1}, ${times})`;
  });
  return [
    "drop table audit_blocks",
    `create table audit (file text not null, seq integer not null, chain text not null, line text not null, type text not null,
       time text not null, call_id text, session text, "user" text, role text, door text, name text, server text, outcome text,
       event text, ${columns}, constraint audit_key primary key (file, seq))`,
    "alter table audit_files add column last_seq bigint not null default 0",
    "delete from migrations where version > 9",
    ...rows,
    ...counts,
  ].join(";\n");
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
