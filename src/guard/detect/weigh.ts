/** Turns cues into scores: a phrase counts for what it says, how it says it, what stands near it, and where it stands. */
import type { FindingCode } from "../../model/finding.ts";
import { isCited } from "./context.ts";
import { severityOf, type Suspicion, SuspicionList } from "./detector.ts";
import { spanAt } from "./hidden-markup.ts";
import { type CueKind, SUPPORT } from "./phrases/cue.ts";
import { type Cue, firstCueFrom, type Passage, REACH } from "./passage.ts";
import { isShown, originalSpan, type Reading } from "./reading.ts";
import {
  ADDRESS_SCORE,
  COMMAND_BONUS,
  DESTINATION_BONUS,
  HIDDEN_BONUS,
  LEAST_ADDRESS,
  LEAST_HIDDEN,
  MOST_SUPPORT,
  SUPPORT_SHARE,
} from "./scores.ts";
import type { Steps } from "./steps.ts";

/** What a second cue of the same kind adds. */
const SAME_KIND = 1.5;
/** The highest score of what is only talked about. */
const TALK = 4;
const CITED_WITHIN = 12;
const MAIL = /[\w.+-]@[\w-]{1,60}\.[a-z]{2}/;
const DROP =
  /\b(?:evil|attacker|exfil|webhook\.site|requestbin|ngrok|burpcollaborator|pastebin)\b|\b\d{1,3}(?:\.\d{1,3}){3}\b/;

/** People take back what they wrote themselves, and say on what condition a step can be left out. */
const OWN_MESSAGE =
  /^\W{0,3}(?:in|from|of) (?:my|our|the|that|last) (?:\w{1,20} )?(?:(?:e-?)?mail|message|letter|note|call|ticket)|^\W{0,3}(?:if|unless) (?:you|your)(?! are an? | are reading)/;

/** Kinds that say by themselves that something is wanted of the reader. Manner and address alone are no attack. */
const HOSTILE = new Set<CueKind>([
  "override",
  "persona",
  "task",
  "reply",
  "secrecy",
  "send",
  "credential",
  "destruction",
  "encoded",
]);

/** Reading a secret and passing it on are two steps of one kind. */
const GATHERING = new Set<CueKind>(["credential", "send"]);

interface Weighing {
  readonly score: number;
  readonly start: number;
  readonly end: number;
}

const WEIGHING_COST = 8_000;

/** There are phrases to weigh. */
export function hasPassages({ passages }: Reading): boolean {
  return passages.length > 0;
}

export function* suspicionsOf(reading: Reading, code: FindingCode): Steps<Suspicion[]> {
  const suspicions = new SuspicionList();
  for (const passage of reading.passages) {
    for (const cue of passage.cues) {
      if (cue.label.code !== code) continue;
      if (!passage.owns(passage.tokens.startOf(cue.first), passage.tokens.endOf(cue.last))) continue;
      yield WEIGHING_COST;
      const weighing = weigh(reading, passage, cue);
      const severity = severityOf(weighing.score);
      if (severity !== undefined) suspicions.add(code, severity, originalSpan(reading, weighing.start, weighing.end));
    }
  }
  return suspicions.all();
}

function weigh(reading: Reading, passage: Passage, cue: Cue): Weighing {
  const { tokens } = passage;
  const start = tokens.startOf(cue.first);
  const end = tokens.endOf(cue.last);
  const { support, hostile } = supportFor(passage, cue);
  let score = cue.label.weight + support;
  // Spoken to the model and hostile is enough; spoken to the model alone is what every guide for agents does.
  if (cue.label.kind === "address")
    score = hostile ? Math.max(score, cue.label.weight >= LEAST_ADDRESS ? ADDRESS_SCORE : 0) : Math.min(score, TALK);
  if (cue.label.verb === true) {
    if (cue.mood === "command") score += COMMAND_BONUS;
    else if (cue.mood === "description" || cue.label.commandOnly === true) score = Math.min(score, TALK);
    else if (cue.label.weight < 9) score -= cue.label.kind === "override" ? 4 : 1.5;
  }
  if (cue.label.kind === "send" || cue.label.kind === "credential") score += destinationWeight(reading, start, end);
  return { score: inContext(reading, passage, cue, score), start, end };
}

/** The best cue of each other kind near by. */
function supportFor({ cues }: Passage, cue: Cue): { support: number; hostile: boolean } {
  const kinds = new Set<CueKind>([cue.label.kind]);
  let support = 0;
  let hostile = false;
  let again = false;
  for (let index = firstCueFrom(cues, cue.first - REACH); index < cues.length; index += 1) {
    const other = cues[index];
    if (other === undefined || other.first > cue.last + REACH) break;
    const { kind } = other.label;
    // Two readings of the same words are one piece of evidence.
    if (other.first <= cue.last && other.last >= cue.first && SUPPORT[kind] > 0.5) continue;
    if (kind === cue.label.kind && !again && GATHERING.has(kind) && other.label.weight >= 3) {
      again = true;
      support += SAME_KIND;
    }
    if (kinds.has(kind)) continue;
    kinds.add(kind);
    support += supportOf(other);
    if (HOSTILE.has(kind)) hostile = true;
  }
  return { support: Math.min(MOST_SUPPORT, support, cue.label.weight * SUPPORT_SHARE), hostile };
}

/** A cue that is next to nothing by itself is next to nothing as support. */
function supportOf(cue: Cue): number {
  const full = SUPPORT[cue.label.kind];
  return cue.label.code !== undefined && cue.label.weight < 3 ? full / 2 : full;
}

/** Nobody honest asks for a key by mail. */
function destinationWeight(reading: Reading, start: number, end: number): number {
  const near = reading.normal.text.slice(start, end + 80);
  if (MAIL.test(near) || DROP.test(near)) return DESTINATION_BONUS;
  return /\bto\W{1,3}(?:the (?:url|address|endpoint|server) )?\W{0,3}https?:\/\//.test(near) ? 1.5 : 0;
}

/** Talk about attacks, quotation and code lower a score; being invisible raises it. */
function inContext(reading: Reading, passage: Passage, cue: Cue, score: number): number {
  const { tokens } = passage;
  const start = tokens.startOf(cue.first);
  const end = tokens.endOf(cue.last);
  // Comments tell developers what to do all day, so only a phrase that is suspicious anywhere gains by hiding.
  if (cue.label.kind === "override" && OWN_MESSAGE.test(reading.normal.text.slice(end, end + 60)))
    return Math.min(score, TALK);
  if (spanAt(reading.hidden, start) !== undefined)
    return cue.label.weight >= LEAST_HIDDEN ? score + HIDDEN_BONUS : score;
  const shown = isShown(reading, start, end);
  const cited = isCited(wordsBefore(passage, cue.first));
  if (shown && (cited || reading.topic >= 2)) return Math.min(score, TALK);
  // A literal of a program; what its comments say is not shown but said.
  if (shown) return reading.shape.code ? Math.min(score, TALK) : score - 2;
  if (reading.topic >= 4 && cited) return Math.min(score, TALK);
  return reading.topic >= 6 ? score - 3 : score;
}

function wordsBefore({ tokens }: Passage, first: number): string[] {
  const words: string[] = [];
  for (let at = Math.max(0, first - CITED_WITHIN); at < first; at += 1) words.push(tokens.word(at));
  return words;
}

/** How hostile the words between two offsets of the normalised text are: the sum of the kinds found there. */
export function hostilityBetween(reading: Reading, start: number, end: number): number {
  const passage = reading.passageAround(start, end);
  if (passage === undefined) return 0;
  const { tokens, cues } = passage;
  const last = tokens.at(end);
  const kinds = new Set<CueKind>();
  let sum = 0;
  for (let index = firstCueFrom(cues, tokens.at(start)); index < cues.length; index += 1) {
    const cue = cues[index];
    if (cue === undefined || cue.first > last) break;
    if (kinds.has(cue.label.kind) || SUPPORT[cue.label.kind] === 0) continue;
    kinds.add(cue.label.kind);
    sum += Math.max(supportOf(cue), cue.label.weight >= 4 ? cue.label.weight / 2 : 0);
  }
  return sum;
}
