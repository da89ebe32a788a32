import { closeSync, openSync } from "node:fs";

export interface CoveredDescriptors {
  /** What follows in `stdio` of a child: each entry is one descriptor. */
  readonly stdio: readonly ("ignore" | number)[];
  close(): void;
}

/** Puts /dev/null in the place of descriptors that a child would inherit: `spawn` can replace them and not close them. */
export function coverDescriptors(descriptors: readonly number[], first: number): CoveredDescriptors {
  const last = Math.max(-1, ...descriptors);
  if (last < first) return { stdio: [], close: () => {} };
  const nothing = openSync("/dev/null", "r+");
  const stdio = Array.from({ length: last - first + 1 }, (_, index) =>
    descriptors.includes(first + index) ? nothing : "ignore",
  );
  return { stdio, close: () => closeSync(nothing) };
}
