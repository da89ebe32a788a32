import { MASK } from "./mask.ts";

/**
 * A text of which parts are shown. It is masked whole, because half a secret is not recognised, and then cut where the text
 * itself would have been.
 */
export class MaskedText {
  readonly #masked: string;
  /** The masks in it, and what each replaces. */
  readonly #gaps: readonly Gap[];

  constructor(text: string, mask: (text: string) => string) {
    const whole = text.toWellFormed();
    this.#masked = mask(whole);
    this.#gaps = this.#masked === whole ? [] : gapsOf(whole, this.#masked);
  }

  /**
   * From and to positions of the text as it was. A secret that is cut is left out, or, with `withCut`, is there as a whole
   * mask.
   */
  slice(from: number, to: number, { withCut = false }: { readonly withCut?: boolean } = {}): string {
    return this.#masked.slice(this.#at(from, !withCut), this.#at(to, withCut)).toWellFormed();
  }

  #at(position: number, after: boolean): number {
    let shift = 0;
    for (const { start, end, maskedAt } of this.#gaps) {
      if (position <= start) break;
      if (position < end) return after ? maskedAt + MASK.length : maskedAt;
      shift = maskedAt + MASK.length - end;
    }
    return position + shift;
  }
}

interface Gap {
  readonly start: number;
  readonly end: number;
  readonly maskedAt: number;
}

/** Where it can be read in two ways, a cut may be some characters off, but it is one of the masked text all the same. */
function gapsOf(text: string, masked: string): Gap[] {
  const kept = masked.split(MASK);
  const gaps: Gap[] = [];
  let start = kept[0]?.length ?? 0;
  let maskedAt = start;
  for (const [index, part] of kept.entries()) {
    if (index === 0) continue;
    const isLast = index === kept.length - 1;
    const end = Math.max(start, isLast ? text.length - part.length : text.indexOf(part, start));
    gaps.push({ start, end, maskedAt });
    start = end + part.length;
    maskedAt += MASK.length + part.length;
  }
  return gaps;
}
