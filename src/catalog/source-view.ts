/** What the catalog takes over from one Source: checked, without duplicates, still in the Source's own names. */
import type { Capability } from "../model/capability.ts";
import { isSessionLocal } from "../model/local-source.ts";
import type { Definitions, Source } from "../model/source.ts";
import { isReservedName } from "./provider-name.ts";
import { examine, type Quarantined } from "./quarantine.ts";

export const KINDS = ["tool", "resource", "template", "prompt"] as const satisfies readonly Capability["kind"][];
export type Kind = (typeof KINDS)[number];
export type DefinitionOf<K extends Kind> = Extract<Capability, { kind: K }>["definition"];

export interface Accepted<K extends Kind> {
  readonly name: string;
  readonly definition: DefinitionOf<K>;
  readonly fingerprint: string;
}

/** One kind of one source. `given` is what the source offered: while it is the same object, nothing is done again. */
export interface Offer<K extends Kind> {
  readonly given: unknown;
  readonly accepted: readonly Accepted<K>[];
  readonly quarantined: readonly Quarantined[];
  readonly duplicates: readonly string[];
}

export type SourceView = { readonly [K in Kind]: Offer<K> };

export function viewOf(source: Source, definitions: Definitions, before: SourceView | undefined): SourceView {
  return {
    tool: offerOf("tool", source, definitions.tools, before?.tool),
    resource: offerOf("resource", source, definitions.resources, before?.resource),
    template: offerOf("template", source, definitions.templates, before?.template),
    prompt: offerOf("prompt", source, definitions.prompts, before?.prompt),
  };
}

function offerOf<K extends Kind>(
  kind: K,
  source: Source,
  given: readonly DefinitionOf<K>[],
  before: Offer<K> | undefined,
): Offer<K> {
  if (before?.given === given) return before;
  const quarantined: Quarantined[] = [];
  const duplicates = new Set<string>();
  // A Map keeps the place of the first insertion; deleting first moves a duplicate to where the last one stood.
  const accepted = new Map<string, Accepted<K>>();
  for (const definition of given) {
    const verdict = examine(kind, definition);
    if (!verdict.ok) {
      quarantined.push({ source: source.id, kind, name: verdict.name, reason: verdict.reason });
    } else if (source.kind === "local" && !isSessionLocal(source.id) && isReservedName(verdict.name)) {
      const reason = "names that begin with skill__ or toolcrib_ are reserved; give it another name";
      quarantined.push({ source: source.id, kind, name: verdict.name, reason });
    } else {
      if (accepted.delete(verdict.name)) duplicates.add(verdict.name);
      accepted.set(verdict.name, { name: verdict.name, definition, fingerprint: verdict.fingerprint });
    }
  }
  return { given, accepted: [...accepted.values()], quarantined, duplicates: [...duplicates] };
}
