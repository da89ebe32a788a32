/** What a measure gives: for each subject a value, and its ratio to the floor of the same rounds. */
import type { Kind, Subject } from "../subjects/subject.ts";
import { pairedRatio, type Spread, spreadOf } from "../stats.ts";

export interface Row {
  readonly subject: string;
  readonly kind: Kind;
  readonly value: Spread;
  /** To the floor, paired by rounds; absent where there is no floor to compare with. */
  readonly ratio?: Spread;
}

export interface Figures {
  readonly measure: string;
  readonly title: string;
  readonly unit: string;
  readonly better: "lower" | "higher";
  /** Whose value the ratios are in relation to. */
  readonly floor?: string;
  readonly rows: readonly Row[];
  readonly failures: Readonly<Record<string, string>>;
}

/** One number for each round, and what the floor did in the same one. */
export interface Sampled {
  readonly values: readonly number[];
  readonly floor?: readonly number[];
}

export interface FiguresOf {
  readonly measure: string;
  readonly title: string;
  readonly unit: string;
  readonly better: "lower" | "higher";
  readonly floor?: string;
  readonly subjects: readonly Subject[];
  /** By name of the subject. */
  readonly samples: ReadonlyMap<string, Sampled>;
  readonly failures?: Readonly<Record<string, string>>;
}

export function figuresOf({ subjects, samples, failures = {}, ...what }: FiguresOf): Figures {
  const rows = subjects.flatMap(({ name, kind }): Row[] => {
    const { values = [], floor } = samples.get(name) ?? {};
    if (values.length === 0) return [];
    return [{ subject: name, kind, value: spreadOf(values), ...(floor && { ratio: pairedRatio(values, floor) }) }];
  });
  return { ...what, rows, failures };
}

export function rowOf(figures: Figures | undefined, kind: Kind, subject?: string): Row | undefined {
  return figures?.rows.find((row) => row.kind === kind && (subject === undefined || row.subject === subject));
}

/** The peer that did best. */
export function bestPeer(figures: Figures | undefined): Row | undefined {
  const peers = figures?.rows.filter(({ kind }) => kind === "peer") ?? [];
  const sign = figures?.better === "higher" ? -1 : 1;
  return peers.toSorted((a, b) => sign * (a.value.median - b.value.median))[0];
}
