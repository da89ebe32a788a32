/** Several AbortSignals as one, with listeners that are removed for certain. */

export interface LinkedSignal {
  readonly signal: AbortSignal;
  /** Removes the listeners. A long-lived signal that serves many calls must not collect them. */
  dispose(): void;
}

/** AbortSignal.any would do, but it keeps a weak entry on each source until garbage collection. */
export function linkSignals(sources: readonly (AbortSignal | undefined)[]): LinkedSignal {
  const controller = new AbortController();
  const abort = (event: Event): void => {
    controller.abort(event.target instanceof AbortSignal ? event.target.reason : undefined);
  };
  const linked: AbortSignal[] = [];
  for (const source of sources) {
    if (source === undefined) continue;
    if (source.aborted) {
      controller.abort(source.reason);
      break;
    }
    source.addEventListener("abort", abort, { once: true });
    linked.push(source);
  }
  return {
    signal: controller.signal,
    dispose() {
      for (const source of linked) source.removeEventListener("abort", abort);
    },
  };
}
