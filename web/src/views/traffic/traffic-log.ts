/** Calls as they happen, in one line each. Bounded: the oldest go first. */
import type { Approval, AuditEntry } from "../../../../src/contract/activity-schemas.ts";
import type { HubEvent } from "../../../../src/contract/websocket.ts";

export const MOST_LINES = 2000;

export interface TrafficLine {
  readonly callId: string;
  /** ISO time. */
  readonly time: string;
  readonly kind: string;
  readonly name: string;
  readonly serverId: string | null;
  readonly client: string | undefined;
  readonly user: string | null;
  readonly role: string | null;
  readonly door: string;
  readonly session: string;
  /** The outcome of a call that has ended; else whether it runs or waits for approval. */
  readonly outcome: string;
  readonly durationMs?: number | undefined;
  readonly resultBytes?: number | undefined;
  readonly findings: readonly string[];
}

export const RUNNING = "running";
export const WAITING = "waiting";

export function hasEnded({ outcome }: TrafficLine): boolean {
  return outcome !== RUNNING && outcome !== WAITING;
}

export const HEARD = ["call.started", "call.finished", "approval.requested", "approval.answered"] as const;
type TrafficEvent = HubEvent<(typeof HEARD)[number]>;

export class TrafficLog {
  /** The oldest first. */
  #lines = new Map<string, TrafficLine>();

  /** The newest first. */
  lines(): readonly TrafficLine[] {
    return [...this.#lines.values()].toReversed();
  }

  take(event: TrafficEvent): void {
    switch (event.type) {
      case "call.started":
        return this.#put(lineOf(event, RUNNING));
      case "call.finished":
        return this.#put({ ...lineOf(event, event.outcome), ...endOf(event) });
      case "approval.requested":
        return this.#put(waitingLine(event.approval));
      case "approval.answered": {
        const line = this.#lines.get(event.callId);
        if (line?.outcome === WAITING) this.#lines.set(event.callId, { ...line, outcome: RUNNING });
      }
    }
  }

  /** Adds calls of before, or of while nothing was heard. */
  seed(records: readonly AuditEntry[], approvals: readonly Approval[]): void {
    const known = [...records.flatMap(recordedLine), ...approvals.map(waitingLine)].filter((line) => {
      const heard = this.#lines.get(line.callId);
      return heard === undefined || (hasEnded(line) && !hasEnded(heard));
    });
    const all = new Map([...this.#lines.values(), ...known].map((line) => [line.callId, line]));
    this.#lines = new Map();
    for (const line of [...all.values()].toSorted((a, b) => compare(a.time, b.time))) this.#put(line);
  }

  #put(line: TrafficLine): void {
    const known = this.#lines.get(line.callId);
    this.#lines.set(line.callId, known === undefined ? line : { ...known, ...line });
    for (const callId of this.#lines.keys()) {
      if (this.#lines.size <= MOST_LINES) return;
      this.#lines.delete(callId);
    }
  }
}

function compare(a: string, b: string): number {
  return a === b ? 0 : a < b ? -1 : 1;
}

function lineOf(event: HubEvent<"call.started" | "call.finished">, outcome: string): TrafficLine {
  const { callId, time, kind, name, serverId, client, user, role, door, session } = event;
  return { callId, time, kind, name, serverId, client, user, role, door, session, outcome, findings: [] };
}

function endOf({ durationMs, resultBytes, findings }: HubEvent<"call.finished">): Partial<TrafficLine> {
  return { durationMs, resultBytes, findings: [...new Set(findings)] };
}

function waitingLine({ callId, askedAt, kind, name, origin, session }: Approval): TrafficLine {
  const { id, door, role = null, user = null, client } = session;
  return {
    ...{
      callId,
      time: askedAt,
      kind,
      name,
      serverId: origin.source,
      client: client?.name,
      user,
      role,
      door,
      session: id,
    },
    outcome: WAITING,
    findings: [],
  };
}

function recordedLine(entry: AuditEntry): TrafficLine[] {
  const { callId, time, kind, name, origin, client, user, role, door, session, outcome } = entry;
  if (callId === undefined || name === undefined || outcome === undefined) return [];
  const findings = Array.isArray(entry["findings"])
    ? (entry["findings"] as readonly { readonly code?: unknown }[])
    : [];
  return [
    {
      ...{ callId, time, name, outcome, client: client?.name, user: user ?? null, role: role ?? null },
      ...{ kind: kind ?? "tool", serverId: origin?.source ?? null, door: door ?? "", session: session ?? "" },
      ...{ durationMs: entry.durationMs, resultBytes: entry.resultBytes },
      findings: [...new Set(findings.flatMap(({ code }) => (typeof code === "string" ? [code] : [])))],
    },
  ];
}

export interface TrafficFilter {
  readonly q?: string | undefined;
  readonly server?: string | undefined;
  readonly client?: string | undefined;
  readonly role?: string | undefined;
  readonly outcome?: string | undefined;
}

export const NO_FILTER: TrafficFilter = {
  q: undefined,
  server: undefined,
  client: undefined,
  role: undefined,
  outcome: undefined,
};

/** Outcomes that are several. */
export const FAILED = "failed";

export function filtered(lines: readonly TrafficLine[], filter: TrafficFilter): readonly TrafficLine[] {
  const { q, server, client, role, outcome } = filter;
  if (!isFiltered(filter)) return lines;
  const words = (q ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  return lines.filter((line) => {
    if (server !== undefined && line.serverId !== server) return false;
    if (client !== undefined && callerOf(line) !== client) return false;
    if (role !== undefined && line.role !== role) return false;
    if (outcome === FAILED ? !hasFailed(line) : outcome !== undefined && line.outcome !== outcome) return false;
    const text = `${line.name} ${line.callId}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

export function isFiltered({ q, server, client, role, outcome }: TrafficFilter): boolean {
  return [q, server, client, role, outcome].some((value) => value !== undefined);
}

/** A call that was cancelled did not fail. */
export function hasFailed(line: TrafficLine): boolean {
  return hasEnded(line) && line.outcome !== "ok" && line.outcome !== "cancelled";
}

/** The program that called, or what is known instead. */
export function callerOf({ client, user, door }: TrafficLine): string {
  return client ?? user ?? door;
}

/** The choices of a filter: values in sight, and the one that is asked for. */
export function choices(
  lines: readonly TrafficLine[],
  of: (line: TrafficLine) => string | null,
  asked: string | undefined,
): readonly string[] {
  const found = new Set(lines.map((line) => of(line) ?? ""));
  found.add(asked ?? "");
  return [...found].filter((each) => each !== "").toSorted();
}
