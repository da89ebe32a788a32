/** The place where the sessions of a node follow resources: the same for all of them, so that each change is told once. */
import { isUp, type Place } from "./place.ts";

export class FollowedPlace {
  /** Of the program that was told what sessions follow. */
  #mark: string | undefined;

  of(places: readonly Place[]): Place | undefined {
    return places.toSorted((one, other) => one.slot - other.slot)[0];
  }

  /** It is to be told again. */
  forget(): void {
    this.#mark = undefined;
  }

  /** Whether it is one that does not know yet what sessions follow, and which one of the others knows; counts as told. */
  look(places: readonly Place[]): { readonly isNew: boolean; readonly former?: Place } {
    const place = this.of(places);
    if (place === undefined || !isUp(place) || place.mark === this.#mark) return { isNew: false };
    const former = places.find(({ mark }) => mark === this.#mark);
    this.#mark = place.mark;
    return former === undefined ? { isNew: true } : { isNew: true, former };
  }
}
