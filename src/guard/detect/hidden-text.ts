import type { Severity } from "../../model/finding.ts";
import { type Detector, type Suspicion, SuspicionList } from "./detector.ts";
import { eachMatch } from "./matches.ts";
import { originalSpan, type Reading } from "./reading.ts";
import type { Steps } from "./steps.ts";
import { hostilityBetween } from "./weigh.ts";

const INVISIBLE =
  "\\u00ad\\u034f\\u115f\\u1160\\u180e\\u200b-\\u200d\\u2060-\\u2064\\u206a-\\u206f\\u3164\\ufeff\\uffa0";
const ANY_INVISIBLE = new RegExp(`[${INVISIBLE}]`);
/** Emoji have one each, so they are common where the others are not. */
const ANY_SELECTOR = /[\ufe00-\ufe0f]|\udb40[\udd00-\uddef]/;
/** A run of invisible characters spells bits. Two may meet in honest text (a joiner after a selector). */
const RUN = new RegExp(`[${INVISIBLE}]{4,}`, "g");
const SELECTOR_RUN = /(?:[\ufe00-\ufe0f]|\udb40[\udd00-\uddef]){2,}/g;
/** Inside a word of Latin letters nothing invisible has a use, but for the soft hyphen and a break before a capital. */
const IN_WORD = /[A-Za-z][\u200b-\u200d\u2060-\u2064\u180e\ufeff]{1,3}(?=[a-z])/g;

const MATCH_COST = 500;

/** Text that a person does not see: invisible characters, and instructions in comments or invisible elements. */
export const hiddenText: Detector = {
  name: "hidden text",
  mayFind: ({ hidden, normal }) => hidden.length > 0 || normal.removed,
  *find(reading) {
    const suspicions = yield* hiddenMarkup(reading);
    if (reading.normal.removed) suspicions.push(...(yield* invisibleCharacters(reading.original)));
    return suspicions;
  },
};

function* invisibleCharacters(text: string): Steps<Suspicion[]> {
  const suspicions = new SuspicionList();
  const add = (severity: Severity, start: number, end: number): void =>
    suspicions.add("hidden_text", severity, { start, end });
  const invisible = ANY_INVISIBLE.test(text);
  yield text.length;
  for (const { 0: run, index } of invisible ? text.matchAll(RUN) : []) {
    yield MATCH_COST;
    const distinct = new Set(run).size;
    // Many of one kind is layout of bad taste; several kinds in turn is a message.
    add(
      run.length >= 8 && distinct >= 2 ? "high" : run.length >= 16 || distinct >= 2 ? "medium" : "low",
      index,
      index + run.length,
    );
  }
  for (const { 0: run, index } of ANY_SELECTOR.test(text) ? text.matchAll(SELECTOR_RUN) : []) {
    yield MATCH_COST;
    const count = [...run].length;
    add(count >= 6 ? "high" : count >= 3 ? "medium" : "low", index, index + run.length);
  }
  if (!invisible) return suspicions.all();
  const often = hasAtLeast(3, text.matchAll(IN_WORD));
  yield* eachMatch(IN_WORD, text, ({ 0: found }, index) => {
    add(often ? "medium" : "low", index, index + found.length);
  });
  return suspicions.all();
}

function hasAtLeast(count: number, matches: Iterable<unknown>): boolean {
  let left = count;
  for (const _ of matches) if ((left -= 1) === 0) return true;
  return false;
}

/** Comments are everywhere; one that gives orders to a reader who is not a developer is not. */
function* hiddenMarkup(reading: Reading): Steps<Suspicion[]> {
  const suspicions = new SuspicionList();
  for (const { start, end } of reading.hidden) {
    yield MATCH_COST;
    const hostility = hostilityBetween(reading, start, end);
    if (hostility < 3.5 || reading.topic >= 6) continue;
    suspicions.add("hidden_text", hostility >= 6 ? "high" : "medium", originalSpan(reading, start, end));
  }
  return suspicions.all();
}
