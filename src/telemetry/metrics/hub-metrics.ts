/** What a hub tells Prometheus. Calls cost a few counters; prom-client is loaded when somebody first asks. */
import { CallCounters, type Measured, type MeasuredHub, ServerLabels } from "./call-counters.ts";
import type { MetricsRegistry } from "./metrics-registry.ts";

export class HubMetrics implements Measured {
  readonly hub: MeasuredHub;
  readonly version: string;
  readonly calls = new CallCounters();
  /** By the label `server`. */
  readonly restarts = new Map<string, number>();
  readonly labels: ServerLabels;
  readonly #stops: readonly (() => void)[];
  #registry: Promise<MetricsRegistry> | undefined;

  constructor(hub: MeasuredHub, version: string) {
    this.hub = hub;
    this.version = version;
    this.labels = new ServerLabels((id) => hub.servers().some((server) => server.id === id));
    this.#stops = [
      hub.on("call", (record) => this.calls.add(this.labels.of(record.origin?.source ?? null), record)),
      hub.on("server", ({ info, previous }) => {
        if (info.state !== "restarting" || previous === "restarting") return;
        const label = this.labels.of(info.id);
        this.restarts.set(label, (this.restarts.get(label) ?? 0) + 1);
      }),
    ];
  }

  /** Everything in Prometheus' text format. */
  async text(): Promise<{ readonly type: string; readonly body: string }> {
    const registry = await this.#open();
    return { type: registry.contentType, body: await registry.metrics() };
  }

  async names(): Promise<string[]> {
    const metrics = await (await this.#open()).getMetricsAsJSON();
    return metrics.map(({ name }) => name);
  }

  close(): void {
    for (const stop of this.#stops) stop();
  }

  #open(): Promise<MetricsRegistry> {
    this.#registry ??= import("./metrics-registry.ts").then(({ makeRegistry }) => makeRegistry(this));
    return this.#registry;
  }
}
