/** Arguments and results in the audit log for a time, of one server or of all. It ends by itself, and with the process. */
import type { Clock } from "../../base/clock.ts";
import type { RecordingState } from "../../contract/activity-schemas.ts";
import type { Cluster } from "../../cluster/cluster.ts";
import type { Config } from "../../model/config.ts";
import type { EventRecord } from "../../telemetry/audit/record.ts";

const TOPIC = "recording";

interface RecordingOptions {
  readonly clock: Clock;
  readonly config: Pick<Config["audit"], "arguments" | "results">;
  /** In a cluster, calls of every node are recorded. */
  readonly nodes?: Pick<Cluster, "publish" | "subscribe"> | undefined;
  readonly note: (record: EventRecord) => void;
  readonly onChange: () => void;
}

/** What is recorded at present. */
interface Span {
  /** Null for all servers. */
  readonly server: string | null;
  readonly since: number;
  readonly until: number;
  /** The user who switched it on, if known. */
  readonly by: string | null;
}

export class Recording {
  readonly #options: RecordingOptions;
  readonly #spans = new Map<string | null, Span & { readonly cancel: () => void }>();
  readonly #stop: (() => void) | undefined;

  constructor(options: RecordingOptions) {
    this.#options = options;
    this.#stop = options.nodes?.subscribe(TOPIC, ({ server, since, until, by }) => {
      if (typeof since !== "number" || typeof until !== "number") return;
      const text = (value: unknown): string | null => (typeof value === "string" ? value : null);
      this.#apply({ server: text(server), since, until, by: text(by) }, () => {});
    });
  }

  /** Runs for every call. */
  readonly isOn = (source: string | null): boolean =>
    this.#spans.size > 0 && (this.#spans.has(null) || (source !== null && this.#spans.has(source)));

  get state(): RecordingState {
    const { arguments: keepsArguments, results } = this.#options.config;
    const iso = (time: number): string => new Date(time).toISOString();
    return {
      arguments: keepsArguments,
      results,
      recordings: [...this.#spans.values()].map(({ server, since, until, by }) => ({
        ...{ server, by },
        since: iso(since),
        until: iso(until),
      })),
    };
  }

  /** @param minutes From now; 0 ends it. */
  set(server: string | null, minutes: number, by: string | null): void {
    const { clock, nodes, note } = this.#options;
    const since = clock.now();
    const span = { server, since, until: since + minutes * 60_000, by };
    this.#apply(span, () => {
      const origin = server === null ? undefined : { source: server, name: server };
      note({ event: "recording.ended", origin });
    });
    nodes?.publish(TOPIC, { ...span });
  }

  close(): void {
    this.#stop?.();
    for (const { cancel } of this.#spans.values()) cancel();
    this.#spans.clear();
  }

  #apply(span: Span, onEnd: () => void): void {
    const { clock, onChange } = this.#options;
    this.#spans.get(span.server)?.cancel();
    this.#spans.delete(span.server);
    const left = span.until - clock.now();
    if (left > 0) {
      const cancel = clock.after(left, () => {
        this.#spans.delete(span.server);
        onEnd();
        onChange();
      });
      this.#spans.set(span.server, { ...span, cancel });
    }
    onChange();
  }
}
