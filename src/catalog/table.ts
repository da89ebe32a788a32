/** The table of one kind, made of what every source offers of it. */
import type { Capability } from "../model/capability.ts";
import type { Quarantined } from "./quarantine.ts";
import type { Accepted, Kind } from "./source-view.ts";

export type CapabilityOf<K extends Kind> = Extract<Capability, { kind: K }>;

/** All capabilities of one kind, in order and by public name. */
export interface KindTable<C extends Capability> {
  readonly list: readonly C[];
  readonly byName: ReadonlyMap<string, C>;
}

/** What one source adds to the table. */
export interface Contribution<K extends Kind> {
  readonly source: string;
  readonly isLocal: boolean;
  readonly accepted: readonly Accepted<K>[];
  /** While this is the same, so are the names that `naming` gives. */
  readonly basis: unknown;
  naming(): (name: string) => string;
}

interface Slice<K extends Kind> {
  readonly accepted: readonly Accepted<K>[];
  readonly basis: unknown;
  readonly isLocal: boolean;
  readonly capabilities: readonly CapabilityOf<K>[];
}

/** Rebuilds only the slices of sources that changed. Capabilities that stay the same keep their identity. */
export class TableBuilder<K extends Kind> {
  readonly #kind: K;
  #slices = new Map<string, Slice<K>>();
  #table: KindTable<CapabilityOf<K>> = { list: Object.freeze([]), byName: new Map() };
  #clashes: readonly Quarantined[] = [];

  constructor(kind: K) {
    this.#kind = kind;
  }

  get table(): KindTable<CapabilityOf<K>> {
    return this.#table;
  }

  /** Capabilities that are kept out because their public names clash. */
  get clashes(): readonly Quarantined[] {
    return this.#clashes;
  }

  build(contributions: readonly Contribution<K>[]): KindTable<CapabilityOf<K>> {
    const slices = new Map(contributions.map((contribution) => [contribution.source, this.#slice(contribution)]));
    if (isSameSequence([...slices.values()], [...this.#slices.values()])) return this.#table;
    this.#slices = slices;
    const clashes: Quarantined[] = [];
    this.#table = join([...slices.values()], clashes);
    this.#clashes = clashes;
    return this.#table;
  }

  #slice({ source, isLocal, accepted, basis, naming }: Contribution<K>): Slice<K> {
    const before = this.#slices.get(source);
    if (before?.accepted === accepted && before.basis === basis) return before;
    const publicName = naming();
    const capabilities = accepted.map(({ name, definition, fingerprint }) => {
      const origin = Object.freeze({ source, name });
      // Kind and definition belong together by K; TypeScript does not see that of a union.
      const made = {
        kind: this.#kind,
        name: publicName(name),
        origin,
        definition,
        fingerprint,
      } as unknown as CapabilityOf<K>;
      const known = this.#table.byName.get(made.name);
      if (known !== undefined && isSameCapability(known, made)) return known;
      Object.freeze(made);
      return made;
    });
    return { accepted, basis, isLocal, capabilities };
  }
}

/**
 * Names are unique by construction, but for a 40-bit hash that an ill-meaning server could search for. Then neither
 * side gets the name, unless one is in-process: handing it to the first would let one server pass for another.
 */
export function join<C extends Capability>(
  slices: readonly { readonly isLocal: boolean; readonly capabilities: readonly C[] }[],
  clashes: Quarantined[],
): KindTable<C> {
  const byName = new Map<string, C>();
  const clashing = new Set<string>();
  // In-process capabilities come first here, so that a later one never takes their name.
  for (const slice of [...slices.filter((one) => one.isLocal), ...slices.filter((one) => !one.isLocal)]) {
    for (const capability of slice.capabilities) {
      if (byName.has(capability.name)) clashing.add(capability.name);
      else byName.set(capability.name, capability);
    }
  }
  const list: C[] = [];
  for (const { isLocal, capabilities } of slices) {
    for (const capability of capabilities) {
      const { name, origin, kind } = capability;
      if (!clashing.has(name) || (isLocal && byName.get(name) === capability)) list.push(capability);
      else
        clashes.push({
          source: origin.source,
          kind,
          name: origin.name,
          reason: `another ${kind} has the public name ${name}`,
        });
    }
  }
  return {
    list: Object.freeze(list),
    byName: clashing.size === 0 ? byName : new Map(list.map((capability) => [capability.name, capability])),
  };
}

/** Equal in all that others can see; the definition objects may differ. */
export function isSameCapability(a: Capability, b: Capability): boolean {
  return (
    a === b ||
    (a.fingerprint === b.fingerprint &&
      a.name === b.name &&
      a.origin.source === b.origin.source &&
      a.origin.name === b.origin.name)
  );
}

function isSameSequence(a: readonly unknown[], b: readonly unknown[]): boolean {
  return a.length === b.length && a.every((value, i) => value === b[i]);
}
