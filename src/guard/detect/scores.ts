/** What can be added to the weight of a cue, and what a cue can come to at the most. */
import type { CueLabel } from "./phrases/cue.ts";

/** Of 10; less is not worth a word. */
export const LEAST_SCORE = 3;
export const MOST_SUPPORT = 5;
/** Company makes a suspicious phrase worse; it does not make an ordinary one suspicious. */
export const SUPPORT_SHARE = 0.9;
export const COMMAND_BONUS = 1;
export const DESTINATION_BONUS = 2.5;
export const HIDDEN_BONUS = 2;
/** Below it, hiding a phrase makes it no worse. */
export const LEAST_HIDDEN = 4;
/** What a phrase that speaks to the model comes to in hostile company, from this weight on. */
export const ADDRESS_SCORE = 5;
export const LEAST_ADDRESS = 3;

/** Whether a cue of this kind can be a finding in some text, with all that `weigh` may add to it. */
export function isNotable({ code, kind, weight, verb }: CueLabel): boolean {
  if (code === undefined) return false;
  let most = weight + Math.min(MOST_SUPPORT, weight * SUPPORT_SHARE);
  if (kind === "address" && weight >= LEAST_ADDRESS) most = Math.max(most, ADDRESS_SCORE);
  if (verb === true) most += COMMAND_BONUS;
  if (kind === "send" || kind === "credential") most += DESTINATION_BONUS;
  if (weight >= LEAST_HIDDEN) most += HIDDEN_BONUS;
  return most >= LEAST_SCORE;
}
