/** The metrics of a hub for Prometheus. A call costs a few counters; prom-client is loaded at the first request. */
import type { Metric, MetricValueWithName, Registry } from "prom-client";
import { isLocalSource, LOCAL_SOURCE } from "../model/capability.ts";
import type { CallRecord } from "./call-record.ts";

/** The part of the hub that is measured. */
export interface MeasuredHub {
  on(name: "call", listener: (record: CallRecord) => void): () => void;
  on(name: "server", listener: (change: ServerChange) => void): () => void;
  servers(): readonly { readonly id: string; readonly state: string }[];
  sessions(): readonly { readonly door: string }[];
  /** Calls that wait for approval. */
  asked(): readonly unknown[];
  measures(): {
    /** Calls in progress, by source. */
    readonly underWay: Iterable<readonly [source: string, calls: number]>;
    /** Audit records that could not be written. */
    readonly auditLost: number;
  };
}

interface ServerChange {
  readonly info: { readonly id: string; readonly state: string };
  readonly previous: string;
}

/** Counters of the calls to one server. */
interface ServerCounters {
  readonly outcomes: Map<string, number>;
  /** One for each bound and one for all above; not cumulative. */
  readonly durations: Float64Array;
  milliseconds: number;
  calls: number;
  resultBytes: number;
  readonly tools: Map<string, ToolCounters>;
}

interface ToolCounters {
  readonly outcomes: Map<string, number>;
  milliseconds: number;
}

/** Upper bounds in seconds: from what a local tool takes to what a browser or a build does. */
const DURATION_BOUNDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300] as const;
/** Calls to further servers share one label, so that the number of series is bounded. */
export const MAX_SERVER_LABELS = 200;

const MAX_CLIENT_LABELS = 30;
/** Of all servers together; further tools of a server share one label. */
export const MAX_TOOL_LABELS = 500;

interface ScoreCounters {
  /** One for each bound and one for all above; not cumulative. */
  readonly counts: Float64Array;
  sum: number;
  count: number;
}

const SCORE_BOUNDS = [3, 4, 5, 6, 7, 8, 9] as const;

export class HubMetrics {
  readonly #hub: MeasuredHub;
  readonly #version: string;
  /** By the label `server`, as are the restarts. */
  readonly #servers = new Map<string, ServerCounters>();
  readonly #restarts = new Map<string, number>();
  /** By code, severity and place, joined by spaces. */
  readonly #findings = new Map<string, number>();
  /** By place. */
  readonly #scores = new Map<string, ScoreCounters>();
  readonly #labels = new Set<string>();
  #toolLabels = 0;
  /** Calls by the name of the program. */
  readonly #clients = new Map<string, number>();
  readonly #stops: readonly (() => void)[];
  #registry: Promise<Registry> | undefined;

  constructor(hub: MeasuredHub, version: string) {
    this.#hub = hub;
    this.#version = version;
    this.#stops = [
      hub.on("call", (record) => this.#countCall(record)),
      hub.on("server", ({ info, previous }) => {
        if (info.state === "restarting" && previous !== "restarting") increment(this.#restarts, this.#label(info.id));
      }),
    ];
  }

  /** Everything in Prometheus' text format. */
  async text(): Promise<{ readonly type: string; readonly body: string }> {
    const registry = await this.#open();
    return { type: registry.contentType, body: await registry.metrics() };
  }

  /** The labels of each metric, by its name. */
  async labels(): Promise<Map<string, readonly string[]>> {
    const metrics = (await this.#open()).getMetricsAsArray();
    // Every metric has this field; the types of prom-client do not say so.
    return new Map(metrics.map((metric) => [metric.name, (metric as { labelNames?: string[] }).labelNames ?? []]));
  }

  close(): void {
    for (const stop of this.#stops) stop();
  }

  #countCall({ kind, origin, outcome, durationMs, resultBytes, client, findings = [] }: CallRecord): void {
    increment(this.#clients, this.#clientLabel(client?.name));
    const server = this.#label(origin?.source ?? null);
    let counters = this.#servers.get(server);
    if (counters === undefined) {
      const durations = new Float64Array(DURATION_BOUNDS.length + 1);
      counters = { outcomes: new Map(), durations, milliseconds: 0, calls: 0, resultBytes: 0, tools: new Map() };
      this.#servers.set(server, counters);
    }
    counters.calls += 1;
    counters.milliseconds += durationMs;
    counters.resultBytes += resultBytes;
    increment(counters.outcomes, outcome);
    if (kind === "tool" && origin !== null) {
      const tool = this.#toolCounters(counters, origin.name);
      tool.milliseconds += durationMs;
      increment(tool.outcomes, outcome);
    }
    const bound = DURATION_BOUNDS.findIndex((seconds) => durationMs / 1000 <= seconds);
    const bucket = bound === -1 ? DURATION_BOUNDS.length : bound;
    counters.durations[bucket] = (counters.durations[bucket] ?? 0) + 1;
    for (const { code, severity, place = "unknown", score = 0 } of findings) {
      increment(this.#findings, `${code} ${severity} ${place}`);
      const scores = this.#scores.get(place) ?? { counts: new Float64Array(SCORE_BOUNDS.length + 1), sum: 0, count: 0 };
      this.#scores.set(place, scores);
      const at = SCORE_BOUNDS.findIndex((bound) => score <= bound);
      const bucketOfScore = at === -1 ? SCORE_BOUNDS.length : at;
      scores.counts[bucketOfScore] = (scores.counts[bucketOfScore] ?? 0) + 1;
      scores.sum += score;
      scores.count += 1;
    }
  }

  /** A tool exists, but a server may have any number of them. */
  #toolCounters({ tools }: ServerCounters, name: string): ToolCounters {
    const isNamed = tools.has(name) || this.#toolLabels < MAX_TOOL_LABELS;
    const label = isNamed ? name : "other";
    let counters = tools.get(label);
    if (counters === undefined) {
      counters = { outcomes: new Map(), milliseconds: 0 };
      tools.set(label, counters);
      if (isNamed) this.#toolLabels += 1;
    }
    return counters;
  }

  /** @param source Where a call went; null if it reached no source. */
  #label(source: string | null): string {
    if (source === null) return "none";
    if (this.#labels.has(source)) return source;
    if (isLocalSource(source)) return LOCAL_SOURCE;
    // The hub's own: skills, search, kept results.
    if (source.includes(":")) return "toolcrib";
    const isServer = (): boolean => this.#hub.servers().some(({ id }) => id === source);
    if (this.#labels.size >= MAX_SERVER_LABELS || !isServer()) return "other";
    this.#labels.add(source);
    return source;
  }

  /** A client can call itself anything, so the number of names is bounded. */
  #clientLabel(name: string | undefined): string {
    if (name === undefined) return "unknown";
    return this.#clients.has(name) || this.#clients.size < MAX_CLIENT_LABELS ? name : "other";
  }

  #open(): Promise<Registry> {
    this.#registry ??= this.#createRegistry();
    return this.#registry;
  }

  /** A separate registry: the program may have one for other things. */
  async #createRegistry(): Promise<Registry> {
    const { collectDefaultMetrics, Counter, Gauge, Registry } = await import("prom-client");
    const hub = this.#hub;
    const servers = this.#servers;
    const registry = new Registry();
    const registers = [registry];
    const gauge = (name: string, help: string, labelNames: readonly string[], values: () => Values): void => {
      const metric: Fillable = new Gauge({ name, help, labelNames, registers, collect: () => fill(metric, values()) });
    };
    const counter = (name: string, help: string, labelNames: readonly string[], values: () => Values): void => {
      const metric: Fillable = new Counter({
        name,
        help,
        labelNames,
        registers,
        collect: () => fill(metric, values()),
      });
    };
    const ofServers = (value: (counters: ServerCounters) => number): Values =>
      Array.from(servers, ([server, counters]) => [{ server }, value(counters)] as const);

    gauge("toolcrib_build_info", "The running version.", ["version"], () => [[{ version: this.#version }, 1]]);
    gauge("toolcrib_servers", "Servers by state.", ["state"], () => [
      ...SERVER_STATES.map((state) => [{ state }, 0] as const),
      ...hub.servers().map(({ state }) => [{ state }, 1] as const),
    ]);
    gauge("toolcrib_server_up", "Whether a server is connected.", ["server"], () => {
      const up = new Map<string, number>();
      for (const { id, state } of hub.servers()) {
        const server = this.#label(id);
        up.set(server, (up.get(server) ?? 0) + (state === "ready" || state === "degraded" ? 1 : 0));
      }
      return Array.from(up, ([server, value]) => [{ server }, value] as const);
    });
    counter("toolcrib_server_restarts_total", "Restarts of servers after they were lost.", ["server"], () =>
      Array.from(this.#restarts, ([server, value]) => [{ server }, value] as const),
    );
    gauge("toolcrib_sessions", "Open sessions by door, the hub's own included.", ["door"], () =>
      hub.sessions().map(({ door }) => [{ door }, 1] as const),
    );
    counter("toolcrib_calls_total", "Calls that ended, by outcome: ok or an error code.", ["server", "outcome"], () =>
      [...servers].flatMap(([server, { outcomes }]) =>
        Array.from(outcomes, ([outcome, value]) => [{ server, outcome }, value] as const),
      ),
    );
    const ofTools = <T>(values: (labels: { server: string; tool: string }, counters: ToolCounters) => T[]): T[] =>
      [...servers].flatMap(([server, { tools }]) =>
        [...tools].flatMap(([tool, counters]) => values({ server, tool }, counters)),
      );
    counter("toolcrib_tool_calls_total", "Calls of tools, by outcome.", ["server", "tool", "outcome"], () =>
      ofTools((labels, { outcomes }) =>
        Array.from(outcomes, ([outcome, value]) => [{ ...labels, outcome }, value] as const),
      ),
    );
    counter("toolcrib_tool_seconds_total", "Time that calls of tools took.", ["server", "tool"], () =>
      ofTools((labels, { milliseconds }) => [[labels, milliseconds / 1000] as const]),
    );
    counter("toolcrib_client_calls_total", "Calls by the name that the client gave itself.", ["client"], () =>
      Array.from(this.#clients, ([client, value]) => [{ client }, value] as const),
    );
    registry.registerMetric(durations(servers));
    gauge("toolcrib_calls_running", "Calls in progress.", ["server"], () =>
      Array.from(hub.measures().underWay, ([source, value]) => [{ server: this.#label(source) }, value] as const),
    );
    counter("toolcrib_rate_limited_total", "Calls that a limit refused.", ["server"], () =>
      ofServers(({ outcomes }) => outcomes.get("rate_limited") ?? 0),
    );
    counter("toolcrib_result_bytes_total", "Bytes of results.", ["server"], () =>
      ofServers(({ resultBytes }) => resultBytes),
    );
    counter("toolcrib_findings_total", "Findings of the guard in results.", ["code", "severity", "place"], () =>
      Array.from(this.#findings, ([key, value]) => {
        const [code = "", severity = "", place = ""] = key.split(" ");
        return [{ code, severity, place }, value] as const;
      }),
    );
    registry.registerMetric(scoreHistogram(this.#scores));
    gauge("toolcrib_approvals_pending", "Calls that wait for approval.", [], () => [[{}, hub.asked().length]]);
    counter("toolcrib_audit_lost_total", "Audit records that could not be written.", [], () => [
      [{}, hub.measures().auditLost],
    ]);
    // A finer measure of the event loop would wake an idle process a hundred times a second.
    collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 50 });
    return registry;
  }
}

function increment(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

const SERVER_STATES = ["disabled", "idle", "connecting", "ready", "degraded", "restarting", "failed", "closed"];
const DURATION = "toolcrib_call_duration_seconds";

type Labels = Readonly<Record<string, string>>;
type Values = Iterable<readonly [labels: Labels, value: number]>;

interface Fillable {
  reset(): void;
  inc(labels: Labels, value: number): void;
}

/** They keep nothing between requests. */
function fill(metric: Fillable, values: Values): void {
  metric.reset();
  for (const [labels, value] of values) metric.inc(labels, value);
}

/** A histogram over our own counters; one of prom-client's needs a call for each value. */
function histogram(
  name: string,
  help: string,
  label: string,
  bounds: readonly number[],
  series: () => Iterable<readonly [labels: Labels, counted: { counts: Float64Array; sum: number; count: number }]>,
): Metric {
  const values = (labels: Labels, { counts, sum, count }: { counts: Float64Array; sum: number; count: number }) => {
    let below = 0;
    const buckets = [...bounds, "+Inf"].map((le, at): MetricValueWithName<string> => {
      below += counts[at] ?? 0;
      return { metricName: `${name}_bucket`, labels: { ...labels, le }, value: below };
    });
    return [
      ...buckets,
      { metricName: `${name}_sum`, labels, value: sum },
      { metricName: `${name}_count`, labels, value: count },
    ];
  };
  const get = async (): Promise<object> => ({
    name,
    help,
    type: "histogram",
    aggregator: "sum",
    values: Array.from(series(), ([labels, counted]) => values(labels, counted)).flat(),
  });
  // The registry asks a metric for its name and for this object, which its own histograms return in the same form.
  return { name, labelNames: [label], get } as unknown as Metric;
}

function durations(servers: ReadonlyMap<string, ServerCounters>): Metric {
  return histogram(DURATION, "How long calls took.", "server", DURATION_BOUNDS, () =>
    Array.from(servers, ([server, { durations: counts, milliseconds, calls }]) => [
      { server },
      { counts, sum: milliseconds / 1000, count: calls },
    ]),
  );
}

function scoreHistogram(scores: ReadonlyMap<string, ScoreCounters>): Metric {
  return histogram("toolcrib_finding_score", "Scores of the guard's findings, of 10.", "place", SCORE_BOUNDS, () =>
    Array.from(scores, ([place, counted]) => [{ place }, counted]),
  );
}
