import type { CallRecord } from "../call-record.ts";
import type { CallTallies } from "./call-tallies.ts";
import type { ServerLabels } from "./server-labels.ts";

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
  readonly calls: CallTallies;
  /** By the label `server`. */
  readonly restarts: ReadonlyMap<string, number>;
  readonly labels: ServerLabels;
}
