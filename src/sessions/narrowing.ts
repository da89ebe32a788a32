/** Several sets of rules that hold for one session together. */
import type { SessionRules } from "../model/tool-rules.ts";

/** What a list of sets makes, by its sets in turn. */
interface Step {
  rules?: SessionRules;
  readonly next: WeakMap<SessionRules, Step>;
}

/** Views and decisions are remembered by the object, so the same sets make the same object. */
const first: Step = { next: new WeakMap() };

/** Undefined for no sets, and the set itself where there is only one. */
export function allOf(sets: readonly SessionRules[]): SessionRules | undefined {
  const [one, ...also] = sets;
  if (one === undefined || also.length === 0) return one;
  let step = first;
  for (const set of sets) {
    let next = step.next.get(set);
    if (next === undefined) step.next.set(set, (next = { next: new WeakMap() }));
    step = next;
  }
  return (step.rules ??= Object.freeze({ ...one, also: Object.freeze(also) }));
}
