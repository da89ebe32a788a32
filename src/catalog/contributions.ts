/** How what a source offers gets its public name: tools and prompts by the naming rule, the rest by URI. */
import type { Source } from "../model/source.ts";
import type { Naming } from "./naming.ts";
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
  #locals: readonly (readonly Accepted<K>[])[] = [];
  #taken: ReadonlySet<string> = new Set();

  of(offers: readonly SourceOffer<K>[], naming: Naming): Contribution<K>[] {
    const locals = offers.filter(({ source }) => source.kind !== "server");
    const isSame =
      this.#locals.length === locals.length && locals.every(({ accepted }, i) => accepted === this.#locals[i]);
    if (naming !== this.#naming || !isSame) {
      this.#naming = naming;
      this.#locals = locals.map(({ accepted }) => accepted);
      this.#taken = new Set(
        locals.flatMap(({ source, accepted }) => [...naming.localNames(source, namesOf(accepted)).values()]),
      );
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
          source.kind === "server" ? naming.serverNames(source.id, names, taken) : naming.localNames(source, names);
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
