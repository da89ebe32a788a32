/** A folder for an audit log that is gone after the test, and records to put into it. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach } from "vitest";
import { type AuditWish, filterOf } from "../../src/hub/audit/query.ts";
import { AuditLog, type AuditLogOptions } from "../../src/telemetry/audit/log.ts";
import { type AuditEntry, readAudit } from "../../src/telemetry/audit/read.ts";
import type { StartRecord } from "../../src/telemetry/call-record.ts";
import { callRecord } from "../support/call-record.ts";

const places = new Set<string>();

afterEach(() => {
  for (const place of places) rmSync(place, { recursive: true, force: true });
  places.clear();
});

export class AuditPlace {
  readonly root = mkdtempSync(join(tmpdir(), "toolcrib-audit-"));
  readonly dir = join(this.root, "audit");
  readonly problems: string[] = [];

  constructor() {
    places.add(this.root);
  }

  log(options: Partial<AuditLogOptions> = {}): AuditLog {
    return new AuditLog({ dir: this.dir, onProblem: (message) => this.problems.push(message), ...options });
  }

  files(): string[] {
    return readdirSync(this.dir)
      .filter((name) => name.endsWith(".jsonl"))
      .toSorted();
  }

  /** Without the newline at the end. */
  lines(file = this.files()[0] ?? ""): string[] {
    return readFileSync(join(this.dir, file), "utf8").trimEnd().split("\n");
  }

  rewrite(change: (lines: string[]) => string[], file = this.files()[0] ?? ""): void {
    writeFileSync(join(this.dir, file), `${change(this.lines(file)).join("\n")}\n`);
  }

  async read(wish: AuditWish = {}): Promise<AuditEntry[]> {
    const entries: AuditEntry[] = [];
    for await (const entry of readAudit(this.dir, { filter: filterOf(wish) })) entries.push(entry);
    return entries;
  }

  async names(wish: AuditWish = {}): Promise<(string | undefined)[]> {
    return (await this.read(wish)).map(({ record }) => record.name);
  }
}

export function startRecord(change: Partial<StartRecord> = {}): StartRecord {
  const { callId, time, session, door, role, kind, name, origin, decision, rule } = callRecord();
  return { callId, time, session, door, role, kind, name, origin, decision, rule, ...change };
}

/** Records with the names `prefix1`, `prefix2` …, as text that is easy to find. */
export function numbered(log: AuditLog, prefix: string, amount: number): void {
  for (let number = 1; number <= amount; number += 1) void log.write(callRecord({ name: `${prefix}${number}` }));
}
