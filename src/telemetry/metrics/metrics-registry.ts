/** The metrics themselves, in a registry of their own: a program may have one for other things. */
import type { Metric, MetricValueWithName, Registry } from "prom-client";
import { DURATION_BOUNDS, type Measured, type ServerCounters } from "./call-counters.ts";

export type MetricsRegistry = Registry;

const SERVER_STATES = ["disabled", "idle", "connecting", "ready", "degraded", "restarting", "failed", "closed"];
const DURATION = "toolcrib_call_duration_seconds";

type Labels = Readonly<Record<string, string>>;
type Values = Iterable<readonly [labels: Labels, value: number]>;

export async function makeRegistry({ hub, version, calls, restarts, labels }: Measured): Promise<MetricsRegistry> {
  const { collectDefaultMetrics, Counter, Gauge, Registry } = await import("prom-client");
  const registry = new Registry();
  const registers = [registry];
  const gauge = (name: string, help: string, labelNames: readonly string[], values: () => Values): void => {
    const metric: Fillable = new Gauge({ name, help, labelNames, registers, collect: () => fill(metric, values()) });
  };
  const counter = (name: string, help: string, labelNames: readonly string[], values: () => Values): void => {
    const metric: Fillable = new Counter({ name, help, labelNames, registers, collect: () => fill(metric, values()) });
  };
  const ofServers = (value: (tally: ServerCounters) => number): Values =>
    Array.from(calls.servers, ([server, tally]) => [{ server }, value(tally)] as const);

  gauge("toolcrib_build_info", "The running version.", ["version"], () => [[{ version }, 1]]);
  gauge("toolcrib_servers", "Servers by state.", ["state"], () => [
    ...SERVER_STATES.map((state) => [{ state }, 0] as const),
    ...hub.servers().map(({ state }) => [{ state }, 1] as const),
  ]);
  gauge("toolcrib_server_up", "Whether a server is connected.", ["server"], () => {
    const up = new Map<string, number>();
    for (const { id, state } of hub.servers()) {
      const server = labels.of(id);
      up.set(server, (up.get(server) ?? 0) + (state === "ready" || state === "degraded" ? 1 : 0));
    }
    return Array.from(up, ([server, value]) => [{ server }, value] as const);
  });
  counter(
    "toolcrib_server_restarts_total",
    "How often servers were started again after they were lost.",
    ["server"],
    () => Array.from(restarts, ([server, value]) => [{ server }, value] as const),
  );
  gauge("toolcrib_sessions", "Open sessions by door, the hub's own included.", ["door"], () =>
    hub.sessions().map(({ door }) => [{ door }, 1] as const),
  );
  counter("toolcrib_calls_total", "Calls that ended, by outcome: ok or an error code.", ["server", "outcome"], () =>
    [...calls.servers].flatMap(([server, { outcomes }]) =>
      Array.from(outcomes, ([outcome, value]) => [{ server, outcome }, value] as const),
    ),
  );
  registry.registerMetric(durations(calls.servers));
  gauge("toolcrib_calls_running", "Calls under way.", ["server"], () =>
    Array.from(hub.measures().underWay, ([source, value]) => [{ server: labels.of(source) }, value] as const),
  );
  counter("toolcrib_rate_limited_total", "Calls that a limit refused.", ["server"], () =>
    ofServers(({ outcomes }) => outcomes.get("rate_limited") ?? 0),
  );
  counter("toolcrib_result_bytes_total", "Bytes of results.", ["server"], () =>
    ofServers((tally) => tally.resultBytes),
  );
  counter("toolcrib_findings_total", "What the guard found in results.", ["code", "severity"], () =>
    [...calls.findings].flatMap(([severity, codes]) =>
      Array.from(codes, ([code, value]) => [{ code, severity }, value] as const),
    ),
  );
  gauge("toolcrib_approvals_pending", "Calls that wait for a yes.", [], () => [[{}, hub.asked().length]]);
  counter("toolcrib_audit_lost_total", "Audit records that could not be written.", [], () => [
    [{}, hub.measures().auditLost],
  ]);
  // A finer look at the event loop would wake an idle process a hundred times a second.
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 50 });
  return registry;
}

interface Fillable {
  reset(): void;
  inc(labels: Labels, value: number): void;
}

/** Nothing is kept in them: they are filled anew for whoever asks. */
function fill(metric: Fillable, values: Values): void {
  metric.reset();
  for (const [labels, value] of values) metric.inc(labels, value);
}

/** A histogram of counters that are kept elsewhere; one of prom-client's own has to be told of each value. */
function durations(servers: ReadonlyMap<string, ServerCounters>): Metric {
  const get = async (): Promise<object> => ({
    name: DURATION,
    help: "How long calls took.",
    type: "histogram",
    aggregator: "sum",
    values: [...servers].flatMap(([server, tally]) => [
      ...buckets(server, tally),
      { metricName: `${DURATION}_sum`, labels: { server }, value: tally.milliseconds / 1000 },
      { metricName: `${DURATION}_count`, labels: { server }, value: tally.calls },
    ]),
  });
  // The registry asks a metric for its name and for this object, which its own histograms give in the same form.
  return { name: DURATION, get } as unknown as Metric;
}

function buckets(server: string, tally: ServerCounters): MetricValueWithName<string>[] {
  let below = 0;
  return [...DURATION_BOUNDS, "+Inf"].map((le, place) => {
    below += tally.durations[place] ?? 0;
    return { metricName: `${DURATION}_bucket`, labels: { server, le }, value: below };
  });
}
