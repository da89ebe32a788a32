/** The table of one kind of capability: checked definitions of every source, under their public names. */
import { type Capability, isSessionLocalSource } from "../model/capability.ts";
import type { Overrides } from "../model/server-spec.ts";
import type { Definitions, Source } from "../model/source.ts";
import { isReservedName, type Naming, type TakenNames } from "./naming.ts";
import { shapeTool } from "./overrides.ts";
import type { PublicUris } from "./public-uris.ts";
import { checkDefinition, type Quarantined } from "./quarantine.ts";

export const KINDS = ["tool", "resource", "template", "prompt"] as const satisfies readonly Capability["kind"][];
export type Kind = (typeof KINDS)[number];
type DefinitionOf<K extends Kind> = Extract<Capability, { kind: K }>["definition"];

interface AcceptedDefinition<K extends Kind> {
  readonly name: string;
  readonly definition: DefinitionOf<K>;
  readonly fingerprint: string;
}

/** One kind of one source. `given` is the list of the source: while it is the same object, nothing is checked again. */
interface KindOffer<K extends Kind> {
  readonly given: unknown;
  readonly accepted: readonly AcceptedDefinition<K>[];
  readonly quarantined: readonly Quarantined[];
  readonly duplicates: readonly string[];
}

/**
 * The definitions of one source that the catalog accepts: checked, without duplicates, still under the names of the
 * source.
 */
export type SourceView = { readonly [K in Kind]: KindOffer<K> };

export function viewSource(source: Source, definitions: Definitions, before: SourceView | undefined): SourceView {
  return {
    tool: readOffer("tool", source, definitions.tools, before?.tool),
    resource: readOffer("resource", source, definitions.resources, before?.resource),
    template: readOffer("template", source, definitions.templates, before?.template),
    prompt: readOffer("prompt", source, definitions.prompts, before?.prompt),
  };
}

function readOffer<K extends Kind>(
  kind: K,
  source: Source,
  given: readonly DefinitionOf<K>[],
  before: KindOffer<K> | undefined,
): KindOffer<K> {
  if (before?.given === given) return before;
  const quarantined: Quarantined[] = [];
  const duplicates = new Set<string>();
  // A Map keeps the place of the first insertion; deleting first moves a duplicate to where the last one stood.
  const accepted = new Map<string, AcceptedDefinition<K>>();
  for (const definition of given) {
    const verdict = checkDefinition(kind, definition);
    if (!verdict.ok) {
      quarantined.push({ source: source.id, kind, name: verdict.name, reason: verdict.reason });
    } else if (source.kind === "local" && !isSessionLocalSource(source.id) && isReservedName(verdict.name)) {
      const reason = "names that begin with skill__ or toolcrib_ are reserved; give it another name";
      quarantined.push({ source: source.id, kind, name: verdict.name, reason });
    } else {
      if (accepted.delete(verdict.name)) duplicates.add(verdict.name);
      // It was checked as one of this kind, and there are thousands of tools: no copy.
      accepted.set(verdict.name, verdict as unknown as AcceptedDefinition<K>);
    }
  }
  return { given, accepted: [...accepted.values()], quarantined, duplicates: [...duplicates] };
}

type CapabilityOf<K extends Kind> = Extract<Capability, { kind: K }>;

/** All capabilities of one kind, in order and by public name. */
export interface KindTable<C extends Capability> {
  readonly list: readonly C[];
  readonly byName: ReadonlyMap<string, C>;
}

/** The entries of one source. */
interface Contribution<K extends Kind> {
  readonly source: string;
  readonly isLocal: boolean;
  readonly accepted: readonly AcceptedDefinition<K>[];
  /** While this is the same, `naming` returns the same names. */
  readonly basis: unknown;
  naming(): (name: string) => string;
  /** Of tools, how the config changes them. */
  readonly shapes?: ServerShapes | undefined;
}

/** The overrides of a server's tools. */
export interface ServerShapes {
  readonly overrides: Overrides;
  readonly where: string;
  /** Public names without the overrides. */
  plainNames(): ReadonlyMap<string, string>;
}

interface Slice<K extends Kind> {
  readonly accepted: readonly AcceptedDefinition<K>[];
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

  /** Capabilities that are left out because their public names clash. */
  get clashes(): readonly Quarantined[] {
    return this.#clashes;
  }

  build(contributions: readonly Contribution<K>[]): KindTable<CapabilityOf<K>> {
    const slices = new Map(contributions.map((contribution) => [contribution.source, this.#slice(contribution)]));
    if (isSameSequence([...slices.values()], [...this.#slices.values()])) return this.#table;
    this.#slices = slices;
    const clashes: Quarantined[] = [];
    this.#table = joinSlices([...slices.values()], clashes);
    this.#clashes = clashes;
    return this.#table;
  }

  #slice({ source, isLocal, accepted, basis, naming, shapes }: Contribution<K>): Slice<K> {
    const before = this.#slices.get(source);
    if (before?.accepted === accepted && before.basis === basis) return before;
    const publicName = naming();
    const plainNames = shapes?.plainNames();
    const capabilities = accepted.map(({ name, definition, fingerprint }) => {
      const origin = Object.freeze({ source, name });
      // Kind and definition belong together by K; TypeScript does not see that of a union.
      const plain = {
        kind: this.#kind,
        name: publicName(name),
        origin,
        definition,
        fingerprint,
      } as unknown as CapabilityOf<K>;
      const made = shapes === undefined ? plain : shaped(plain, shapes, plainNames?.get(name));
      const known = this.#table.byName.get(made.name);
      if (known !== undefined && isSameCapability(known, made)) return known;
      Object.freeze(made);
      return made;
    });
    return { accepted, basis, isLocal, capabilities };
  }
}

function shaped<C extends Capability>(capability: C, { overrides, where }: ServerShapes, plainName?: string): C {
  const { name } = capability.origin;
  const override = Object.hasOwn(overrides, name) ? overrides[name] : undefined;
  if (capability.kind !== "tool" || override === undefined) return capability;
  const names = { name: capability.name, ownName: override.name, plainName };
  // Tools become tools.
  return shapeTool(capability, override, { level: "server", where }, names) as Capability as C;
}

/**
 * Names are unique by construction, but for a 40-bit hash that an ill-meaning server could search for. Then neither
 * side gets the name, unless one is in-process: handing it to the first would let one server pass for another.
 */
export function joinSlices<C extends Capability>(
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

export interface SourceOffer<K extends Kind> {
  readonly source: Source;
  readonly accepted: readonly AcceptedDefinition<K>[];
}

/** Tools or prompts. In-process names take precedence over servers, so they are remembered to detect changes. */
export class NamedContributions<K extends "tool" | "prompt"> {
  #naming: Naming | undefined;
  #base: TakenNames | undefined;
  #locals: readonly (readonly AcceptedDefinition<K>[])[] = [];
  /** Public names of the in-process sources, by their own. */
  #localNames: ReadonlyMap<Source, ReadonlyMap<string, string>> = new Map();
  #taken: TakenNames = new Set<string>();

  /**
   * @param base Names that the hub has, where a session brings these; another object when they may be others.
   * @param overridesOf Of a server's tools; they are others only if `naming` is another one.
   */
  of(
    offers: readonly SourceOffer<K>[],
    naming: Naming,
    base?: TakenNames,
    overridesOf: (source: string) => Omit<ServerShapes, "plainNames"> | undefined = () => undefined,
  ): Contribution<K>[] {
    const locals = offers.filter(({ source }) => source.kind !== "server");
    const isSame =
      this.#locals.length === locals.length && locals.every(({ accepted }, i) => accepted === this.#locals[i]);
    if (naming !== this.#naming || base !== this.#base || !isSame) {
      this.#naming = naming;
      this.#base = base;
      this.#locals = locals.map(({ accepted }) => accepted);
      const own = new Set<string>();
      const named = new Map<Source, ReadonlyMap<string, string>>();
      // Skills are named last: their names follow a template, and those of in-process tools do not.
      for (const { source, accepted } of locals.toSorted((a, b) => skillsLast(a) - skillsLast(b))) {
        const names =
          source.kind === "skills"
            ? naming.skillNames(source.id, namesOf(accepted), own)
            : naming.localNames(source, namesOf(accepted), base);
        named.set(source, names);
        for (const name of names.values()) own.add(name);
      }
      this.#localNames = named;
      this.#taken = base === undefined ? own : { has: (name) => own.has(name) || base.has(name) };
    }
    const [taken, localNames] = [this.#taken, this.#localNames];
    return offers.map(({ source, accepted }) => {
      const given = source.kind === "server" ? overridesOf(source.id) : undefined;
      const plainNames = (): Map<string, string> => naming.serverNames(source.id, namesOf(accepted), taken);
      return {
        source: source.id,
        isLocal: source.kind !== "server",
        accepted,
        basis: taken,
        naming: () => {
          const publicNames =
            localNames.get(source) ?? naming.serverNames(source.id, namesOf(accepted), taken, given?.overrides);
          return (name) => publicNames.get(name) ?? name;
        },
        shapes: given && { ...given, plainNames },
      };
    });
  }
}

function skillsLast({ source }: { readonly source: Source }): number {
  return source.kind === "skills" ? 1 : 0;
}

/** Resources or templates. */
export function uriContributions<K extends "resource" | "template">(
  offers: readonly SourceOffer<K>[],
  uris: PublicUris,
): Contribution<K>[] {
  return offers.map(({ source: { id, kind }, accepted }) => ({
    source: id,
    isLocal: kind !== "server",
    accepted,
    basis: uris.revision,
    naming: () => (uri) => uris.publicUri(id, uri),
  }));
}

function namesOf(accepted: readonly { readonly name: string }[]): string[] {
  return accepted.map(({ name }) => name);
}
