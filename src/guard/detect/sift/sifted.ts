/** What a first look at a text has left of it. Each "no" is certain; each "yes" is for the detectors to look at. */
export interface Sifted {
  /** Nothing but printable ASCII, tabs and line breaks: normalising changes only its case. */
  readonly plain: boolean;
  /** Where words stand that phrases which become findings may be made of, rising; undefined for all over the text. */
  readonly phrases: readonly number[] | undefined;
  /** Where words stand in what may be a label, rising; undefined for all over the text. */
  readonly labels: readonly number[] | undefined;
  /** The starts of lines that may begin with the name of a role, rising; undefined for all over the text. */
  readonly lines: readonly number[] | undefined;
  /** Marks of turns in brackets may be there. */
  readonly turns: boolean;
  readonly calls: boolean;
  /** Words may be written letter by letter. */
  readonly spelled: boolean;
  /** Words may be turned by thirteen letters. */
  readonly rotated: boolean;
  readonly backwards: boolean;
  /** There may be phrases of languages that write without spaces. */
  readonly unspaced: boolean;
  /** How much the text is about attacks on models; exact up to `MOST_TOPIC`. Undefined: not looked at. */
  readonly topic: number | undefined;
}

/** No detector asks for more. */
export const MOST_TOPIC = 6;

/** Nothing was ruled out. */
export const UNSIFTED: Sifted = {
  plain: false,
  phrases: undefined,
  labels: undefined,
  lines: undefined,
  turns: true,
  calls: true,
  spelled: true,
  rotated: true,
  backwards: true,
  unspaced: true,
  topic: undefined,
};
