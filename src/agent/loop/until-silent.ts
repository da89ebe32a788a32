import type { Clock } from "../../model/clock.ts";

/** Rejects with `silence()` if nothing comes of it for so long; what comes later is dropped. */
export async function untilSilent<Value>(
  promise: Promise<Value>,
  { ms, clock, silence }: { readonly ms: number; readonly clock: Clock; readonly silence: () => Error },
): Promise<Value> {
  const { promise: silent, reject } = Promise.withResolvers<never>();
  const cancel = clock.after(ms, () => reject(silence()));
  try {
    return await Promise.race([promise, silent]);
  } finally {
    cancel();
  }
}
