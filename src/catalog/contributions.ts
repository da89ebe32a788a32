/** How what a source offers gets its public name: tools and prompts by the naming rule, the rest by URI. */
import type { Source } from "../model/source.ts";
import type { Naming, TakenNames } from "./naming.ts";
import type { PublicUris } from "./public-uris.ts";
import type { Accepted, Kind } from "./source-view.ts";
import type { Contribution } from "./table.ts";

export interface SourceOffer<K extends Kind> {
  readonly source: Source;
  readonly accepted: readonly Accepted<K>[];
}

/** Tools or prompts. Servers yield to in-process names, so these are remembered to tell whether they changed. */
export class NamedContributions<K extends "tool" | "prompt"> {
  #naming: Naming | undefined;
  #beneath: TakenNames | undefined;
  #locals: readonly (readonly Accepted<K>[])[] = [];
  #taken: TakenNames = new Set<string>();

  /** @param beneath Names that the hub has, where a session brings these; another object when they may be others. */
  of(offers: readonly SourceOffer<K>[], naming: Naming, beneath?: TakenNames): Contribution<K>[] {
    const locals = offers.filter(({ source }) => source.kind !== "server");
    const isSame =
      this.#locals.length === locals.length && locals.every(({ accepted }, i) => accepted === this.#locals[i]);
    if (naming !== this.#naming || beneath !== this.#beneath || !isSame) {
      this.#naming = naming;
      this.#beneath = beneath;
      this.#locals = locals.map(({ accepted }) => accepted);
      const own = new Set(
        locals.flatMap(({ source, accepted }) => [...naming.localNames(source, namesOf(accepted), beneath).values()]),
      );
      this.#taken = beneath === undefined ? own : { has: (name) => own.has(name) || beneath.has(name) };
    }
    const taken = this.#taken;
    return offers.map(({ source, accepted }) => ({
      source: source.id,
      isLocal: source.kind !== "server",
      accepted,
      basis: taken,
      naming: () => {
        const names = namesOf(accepted);
        const publicNames =
          source.kind === "server"
            ? naming.serverNames(source.id, names, taken)
            : naming.localNames(source, names, beneath);
        return (name) => publicNames.get(name) ?? name;
      },
    }));
  }
}

/** Resources or templates. */
export function locatedContributions<K extends "resource" | "template">(
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
