/** Plain counters, kept on the way of every call; what reads them pays for the rest. */
import type { CallRecord } from "../call-record.ts";

/** Upper bounds in seconds: from what a local tool takes to what a browser or a build does. */
export const DURATION_BOUNDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300] as const;

export interface ServerTally {
  readonly outcomes: Map<string, number>;
  /** One for each bound and one for all above; not cumulative. */
  readonly durations: Float64Array;
  milliseconds: number;
  calls: number;
  resultBytes: number;
}

type Tallied = Pick<CallRecord, "outcome" | "durationMs" | "resultBytes" | "findings">;

export class CallTallies {
  /** By the label `server`. */
  readonly servers = new Map<string, ServerTally>();
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

  #of(server: string): ServerTally {
    const known = this.servers.get(server);
    if (known !== undefined) return known;
    const durations = new Float64Array(DURATION_BOUNDS.length + 1);
    const tally: ServerTally = { outcomes: new Map(), durations, milliseconds: 0, calls: 0, resultBytes: 0 };
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
