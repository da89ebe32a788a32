/** Values to mask, in all their forms, as one pattern that is made anew only after a new value. */
import { FormFilter, SHORTEST_FILTERED } from "./form-filter.ts";
import { MASK, maskEach } from "./mask.ts";
import { formsOf } from "./value-forms.ts";

/** A pattern of a longer form would be larger than the engine takes. */
const LONG = 1024;
/** So much of a form's beginning is recognised where a text was cut off. */
const BEGINNING = 8;
/** Shorter texts are searched as fast as they are filtered. */
const FILTERED = 512;
/** What stands where somebody cut a text, or nothing at all. */
const CUT = /["'`)\]]{0,2}(…|\.\.\.|$)/y;
/** Where a text merely ends with one of these, that is a word sooner than half a secret. */
const WORD = /^[A-Za-z]{1,11}$/;

interface Begun {
  readonly form: string;
  /** Less of it holds nothing secret. */
  readonly least: number;
}

export class KnownValues {
  readonly #shortest: number;
  readonly #values = new Set<string>();
  readonly #forms = new Set<string>();
  readonly #longForms = new Set<string>();
  /** Forms by their beginning. */
  readonly #beginnings = new Map<string, Begun[]>();
  /** For texts that are long enough to be worth it. */
  readonly #filter: FormFilter | undefined;
  #pattern: RegExp | undefined;
  #beginningPattern: RegExp | undefined;

  /** @param shortest Shorter values are not masked. */
  constructor(shortest: number) {
    this.#shortest = shortest;
    this.#filter = shortest < SHORTEST_FILTERED ? undefined : new FormFilter();
  }

  get empty(): boolean {
    return this.#values.size === 0;
  }

  /** @param open So many characters at the beginning of the value say nothing secret. */
  add(value: string, open = 0): void {
    if (value.length < this.#shortest || this.#values.has(value)) return;
    this.#values.add(value);
    const openForms = open === 0 ? [] : formsOf(value.slice(0, open));
    for (const form of new Set(formsOf(value))) {
      if (form.length >= this.#shortest) {
        (form.length < LONG ? this.#forms : this.#longForms).add(form);
        this.#filter?.add(form);
      }
      if (form.length <= BEGINNING) continue;
      const begun = { form, least: leastOf(form, openForms) };
      const beginning = form.slice(0, BEGINNING);
      const others = this.#beginnings.get(beginning);
      if (others === undefined) this.#beginnings.set(beginning, [begun]);
      else others.push(begun);
    }
    this.#pattern = undefined;
    this.#beginningPattern = undefined;
  }

  mask(text: string): string {
    if (this.empty || text.length < this.#shortest) return text;
    if (text.length > FILTERED && this.#filter?.mayHold(text) === false) return text;
    let masked = text;
    for (const form of this.#longForms) if (text.length >= form.length) masked = masked.replaceAll(form, MASK);
    if (this.#forms.size === 0) return masked;
    this.#pattern ??= alternation(this.#forms);
    return masked.replace(this.#pattern, MASK);
  }

  /** Masks the beginning of a value at a place where the text was cut off: who shortens a text may not know its secrets. */
  maskCut(text: string): string {
    if (this.#beginnings.size === 0 || text.length < BEGINNING) return text;
    this.#beginningPattern ??= alternation(this.#beginnings.keys());
    return maskEach(text, this.#beginningPattern, ({ index, 0: beginning }) => {
      for (const { form, least } of this.#beginnings.get(beginning) ?? []) {
        const length = commonLength(form, text, index);
        if (length >= least && isCut(text, index, index + length)) return [index, index + length];
      }
      return undefined;
    });
  }
}

/** Is the text cut off at `end`, in the middle of what begins at `start`? */
function isCut(text: string, start: number, end: number): boolean {
  CUT.lastIndex = end;
  const cut = CUT.exec(text);
  if (cut === null) return false;
  const isWhole = start === 0 || !/[A-Za-z0-9]/.test(text.charAt(start - 1));
  return cut[1] !== "" || !isWhole || !WORD.test(text.slice(start, end));
}

/** One more than what the form has of the open beginning. */
function leastOf(form: string, openForms: readonly string[]): number {
  const open = openForms.filter((each) => form.startsWith(each)).map((each) => each.length);
  return Math.max(BEGINNING, ...open.map((length) => length + 1));
}

/** How much of the form stands in the text at this place. */
function commonLength(form: string, text: string, at: number): number {
  let length = BEGINNING;
  while (length < form.length && form.charCodeAt(length) === text.charCodeAt(at + length)) length++;
  return length;
}

/** Longest first, so that a secret that holds another one is masked whole. */
function alternation(forms: Iterable<string>): RegExp {
  const longestFirst = [...forms].toSorted((a, b) => b.length - a.length);
  return new RegExp(longestFirst.map((form) => form.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&")).join("|"), "g");
}
