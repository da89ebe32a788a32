/** Whoever looks at more than this is as slow as a loop without end; the size of such a value is bounded elsewhere. */
const MOST_LOOKED_AT = 100_000;

/** Whether a value is somewhere inside itself, so that no JSON can be made of it. */
export function holdsItself(value: unknown): boolean {
  const around = new Set<object>();
  const seen = new Set<object>();
  // A stack of its own: what is nested deeply would overflow a recursive walk.
  const pending: { readonly value: unknown; readonly isLeft?: true }[] = [{ value }];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const at = next.value;
    if (typeof at !== "object" || at === null) continue;
    if (next.isLeft === true) {
      around.delete(at);
      continue;
    }
    if (around.has(at)) return true;
    if (seen.has(at)) continue;
    if (seen.size >= MOST_LOOKED_AT) return false;
    seen.add(at);
    around.add(at);
    pending.push({ value: at, isLeft: true });
    for (const member of Object.values(at)) if (typeof member === "object") pending.push({ value: member });
  }
  return false;
}
