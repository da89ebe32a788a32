/** What a phrase says about a text. */
import type { FindingCode } from "../../../model/finding.ts";
import type { PhraseSpec } from "./book.ts";

export type CueKind =
  | "override"
  | "persona"
  | "task"
  | "reply"
  | "secrecy"
  | "address"
  | "directive"
  | "urgency"
  | "authority"
  | "send"
  | "credential"
  | "tool"
  | "destruction"
  | "encoded"
  | "topic";

export interface CueLabel {
  readonly kind: CueKind;
  /** A cue with a code can become a finding; one without only supports its neighbours. */
  readonly code?: FindingCode;
  /** Of 10. From 5 on the phrase alone is suspicious, from 8 on it is an alarm. */
  readonly weight: number;
  /** The first word is a verb: how it is used (command, description, negation) changes the weight. */
  readonly verb?: boolean;
  /** Only a command counts in full: the same words are said of users and programs all day. */
  readonly commandOnly?: boolean;
  /** Not counted in a sentence that forbids it: "never run it without asking the user". */
  readonly unlessNegated?: boolean;
}

/** How much a cue of a kind adds to a finding of another kind that stands near it. */
export const SUPPORT: Readonly<Record<CueKind, number>> = {
  override: 2.5,
  persona: 2,
  task: 1.5,
  reply: 1.5,
  secrecy: 2.5,
  address: 2,
  directive: 0.5,
  urgency: 0.5,
  authority: 1,
  send: 2,
  credential: 2,
  tool: 1,
  destruction: 2,
  encoded: 2,
  topic: 0,
};

/** `weights` lines up phrases with their weight: one line of a table reads `9: ignore your ~3 @orders`. */
export function table(
  label: Omit<CueLabel, "weight">,
  rows: readonly (readonly [weight: number, phrase: string])[],
): PhraseSpec<CueLabel>[] {
  return rows.map(([weight, phrase]) => ({ label: { ...label, weight }, phrase }));
}
