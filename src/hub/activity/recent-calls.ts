/** Figures of the last 30 minutes of calls, in constant memory. */
import type { Overview } from "../../contract/activity-schemas.ts";
import type { CallRecord } from "../../telemetry/call-record.ts";

const MINUTE_MS = 60_000;
export const MINUTES_KEPT = 30;
const MAX_INCIDENTS = 20;

type MinutePoint = Overview["minutes"][number];
type Incident = Overview["denials"][number];

interface Minute {
  /** Minutes since 1970; the place is used again for a later one. */
  number: number;
  calls: number;
  failed: number;
  readonly latencies: LatencyHistogram;
}

export class RecentCalls {
  readonly #minutes: (Minute | undefined)[] = Array.from({ length: MINUTES_KEPT });
  readonly #denials: Incident[] = [];
  readonly #findings: Incident[] = [];

  /** @param now When it ended. */
  add(record: CallRecord, now: number): void {
    const minute = this.#minute(Math.floor(now / MINUTE_MS));
    const { outcome, durationMs, findings } = record;
    minute.calls += 1;
    if (outcome !== "ok") minute.failed += 1;
    minute.latencies.add(durationMs);
    if (outcome === "denied" || outcome === "blocked") keepIncident(this.#denials, record);
    if (findings !== undefined && findings.length > 0) keepIncident(this.#findings, record);
  }

  /** One point for each minute, the newest last; also for those in which nothing happened. */
  minutes(now: number): MinutePoint[] {
    const newest = Math.floor(now / MINUTE_MS);
    return Array.from({ length: MINUTES_KEPT }, (_, index) => {
      const number = newest - MINUTES_KEPT + 1 + index;
      const kept = this.#minutes[number % MINUTES_KEPT];
      const minute = kept?.number === number ? kept : undefined;
      return {
        at: new Date(number * MINUTE_MS).toISOString(),
        calls: minute?.calls ?? 0,
        failed: minute?.failed ?? 0,
        p50: minute?.latencies.quantile(0.5) ?? null,
        p95: minute?.latencies.quantile(0.95) ?? null,
      };
    });
  }

  /** The newest first. */
  denials(): Incident[] {
    return this.#denials.toReversed();
  }

  findings(): Incident[] {
    return this.#findings.toReversed();
  }

  #minute(number: number): Minute {
    const place = number % MINUTES_KEPT;
    const kept = this.#minutes[place];
    if (kept?.number === number) return kept;
    if (kept === undefined)
      return (this.#minutes[place] = { number, calls: 0, failed: 0, latencies: new LatencyHistogram() });
    kept.latencies.clear();
    return Object.assign(kept, { number, calls: 0, failed: 0 });
  }
}

function keepIncident(incidents: Incident[], { time, callId, name, origin, outcome, findings = [] }: CallRecord): void {
  const codes = new Set(findings.map(({ code }) => code));
  incidents.push({ at: time, callId, name, server: origin?.source ?? null, outcome, findings: [...codes] });
  if (incidents.length > MAX_INCIDENTS) incidents.shift();
}

const BUCKET_GROWTH = Math.log(1.2);
/** The last one takes everything from about an hour on. */
const BUCKET_COUNT = 86;

/** Percentiles without keeping the values: each bucket is a fifth wider than the one before. */
export class LatencyHistogram {
  readonly #counts = new Uint32Array(BUCKET_COUNT);
  #total = 0;

  add(ms: number): void {
    // Everything below a millisecond is in one bucket.
    const bucket = ms < 1 ? 0 : Math.min(BUCKET_COUNT - 1, 1 + Math.floor(Math.log(ms) / BUCKET_GROWTH));
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1;
    this.#total += 1;
  }

  clear(): void {
    this.#counts.fill(0);
    this.#total = 0;
  }

  /** In whole milliseconds, a tenth off at most; null where there is nothing. */
  quantile(share: number): number | null {
    if (this.#total === 0) return null;
    const rank = Math.max(1, Math.ceil(share * this.#total));
    let seen = 0;
    for (const [bucket, count] of this.#counts.entries()) {
      seen += count;
      if (seen >= rank) return bucket === 0 ? 0 : Math.round(Math.exp((bucket - 0.5) * BUCKET_GROWTH));
    }
    return null;
  }
}
