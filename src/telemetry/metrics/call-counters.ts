/** Plain counters, kept on the way of every call; what reads them pays for the rest. */
import { isLocalSource, LOCAL_SOURCE } from "../../model/capability.ts";
import type { CallRecord } from "../call-record.ts";

/** Upper bounds in seconds: from what a local tool takes to what a browser or a build does. */
export const DURATION_BOUNDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300] as const;

export interface ServerCounters {
  readonly outcomes: Map<string, number>;
  /** One for each bound and one for all above; not cumulative. */
  readonly durations: Float64Array;
  milliseconds: number;
  calls: number;
  resultBytes: number;
}

type Tallied = Pick<CallRecord, "outcome" | "durationMs" | "resultBytes" | "findings">;

export class CallCounters {
  /** By the label `server`. */
  readonly servers = new Map<string, ServerCounters>();
  /** By severity, then code. */
  readonly findings = new Map<string, Map<string, number>>();

  add(server: string, { outcome, durationMs, resultBytes, findings }: Tallied): void {
    const tally = this.#of(server);
    tally.calls += 1;
    tally.milliseconds += durationMs;
    tally.resultBytes += resultBytes;
    tally.outcomes.set(outcome, (tally.outcomes.get(outcome) ?? 0) + 1);
    const place = bucketOf(durationMs / 1000);
    tally.durations[place] = (tally.durations[place] ?? 0) + 1;
    for (const { code, severity } of findings ?? []) {
      const codes = this.findings.get(severity) ?? new Map<string, number>();
      this.findings.set(severity, codes.set(code, (codes.get(code) ?? 0) + 1));
    }
  }

  #of(server: string): ServerCounters {
    const known = this.servers.get(server);
    if (known !== undefined) return known;
    const durations = new Float64Array(DURATION_BOUNDS.length + 1);
    const tally: ServerCounters = { outcomes: new Map(), durations, milliseconds: 0, calls: 0, resultBytes: 0 };
    this.servers.set(server, tally);
    return tally;
  }
}

function bucketOf(seconds: number): number {
  let place = 0;
  for (const bound of DURATION_BOUNDS) {
    if (seconds <= bound) break;
    place += 1;
  }
  return place;
}

interface ServerChange {
  readonly info: { readonly id: string; readonly state: string };
  readonly previous: string;
}

/** The part of the hub that is measured. */
export interface MeasuredHub {
  on(name: "call", listener: (record: CallRecord) => void): () => void;
  on(name: "server", listener: (change: ServerChange) => void): () => void;
  servers(): readonly { readonly id: string; readonly state: string }[];
  sessions(): readonly { readonly door: string }[];
  /** Calls that wait for a yes. */
  asked(): readonly unknown[];
  measures(): {
    /** Calls under way, by source. */
    readonly underWay: Iterable<readonly [source: string, calls: number]>;
    /** Audit records that could not be written. */
    readonly auditLost: number;
  };
}

/** What the metrics are made of. */
export interface Measured {
  readonly hub: MeasuredHub;
  readonly version: string;
  readonly calls: CallCounters;
  /** By the label `server`. */
  readonly restarts: ReadonlyMap<string, number>;
  readonly labels: ServerLabels;
}

/** Values of the label `server`: known servers, up to a number; anything else shares a few words, whatever is asked for. */

export const MAX_SERVER_LABELS = 200;

export class ServerLabels {
  readonly #isServer: (id: string) => boolean;
  readonly #known = new Set<string>();

  constructor(isServer: (id: string) => boolean) {
    this.#isServer = isServer;
  }

  /** @param source Where a call went; null if it got nowhere. */
  of(source: string | null): string {
    if (source === null) return "none";
    if (isLocalSource(source)) return LOCAL_SOURCE;
    if (this.#known.has(source)) return source;
    // The hub's own: skills, search, kept results.
    if (source.includes(":")) return "toolcrib";
    if (this.#known.size >= MAX_SERVER_LABELS || !this.#isServer(source)) return "other";
    this.#known.add(source);
    return source;
  }
}
