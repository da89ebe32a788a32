import { isFenced } from "./context.ts";
import { type Detector, severityOf, SuspicionList } from "./detector.ts";
import { eachMatch, matchesAt, type Visit } from "./matches.ts";
import { isShown, originalSpan, type Reading } from "./reading.ts";
import { hostilityBetween } from "./weigh.ts";

interface CallForm {
  /** With the flag `y` for what starts with "<". */
  readonly pattern: RegExp;
  /** Stands in every match; for a pattern that starts with something common. */
  readonly sign?: string;
  readonly weight: number;
  /** What it counts for more outside of a document that is all JSON. */
  readonly inProse?: number;
}

const FORMS: readonly CallForm[] = [
  { pattern: /<\s?(?:antml:|\w{1,12}:)?function_calls?\s?>/y, sign: "function_call", weight: 7 },
  { pattern: /<\s?(?:antml:|\w{1,12}:)?invoke\s{1,3}name\s?=/y, sign: "invoke", weight: 7 },
  {
    pattern:
      /<\s?\|?\s?(?:tool_calls?|tool_use|tool_code|tool_call_begin|tool▁calls▁begin|python_tag|functioncall)\s?\|?\s?>/y,
    weight: 7,
  },
  { pattern: /<function=\w{1,60}>/y, sign: "<function=", weight: 7 },
  { pattern: /\[\s?tool_calls?\s?\]/g, sign: "tool_call", weight: 7 },
  {
    pattern: /"(?:tool_calls?|function_call|tool_use|tool_uses)"\s{0,4}:\s{0,4}[[{]/g,
    weight: 3,
  },
  {
    pattern: /"type"\s{0,4}:\s{0,4}"(?:tool_use|tool_call|function_call)"/g,
    weight: 3,
  },
  {
    pattern:
      /"(?:tool|tool_name|function|recipient_name|action|name)"\s{0,4}:\s{0,4}"[\w.:-]{1,80}"\s{0,4},\s{0,4}"(?:arguments|parameters|args|input|tool_input|action_input|kwargs|params)"\s{0,4}:\s{0,4}["{]/g,
    weight: 2.5,
    inProse: 1,
  },
  {
    pattern: /(?:^|[\s.>*])action:\s{0,3}[\w.:-]{2,60}\s{0,3}\n\s{0,6}action input:/gm,
    sign: "action input:",
    weight: 5.5,
  },
];

/** Every match holds a word of sift/structure.ts. */
export const CALL_PATTERNS: readonly RegExp[] = FORMS.map(({ pattern }) => pattern);

/** A tool whose call does harm: the difference between a log of calls and a call that wants to happen. */
const DANGEROUS =
  /(?:send|delete|remove|exec|shell|bash|terminal|transfer|wire|pay|upload|email|e_mail|mail|post|http|fetch|curl|write|drop|run|command|exfil|forward|publish|share|grant|admin|secret|password|credential|read_file|get_env|environment|wallet|invite|push|merge|approve|disable)/;
const NEAR = 240;

/** The notation in which a model calls tools, written into a result so that somebody runs it. */
export const toolCallForging: Detector = {
  name: "tool call forging",
  mayFind: ({ sifted }) => sifted.calls,
  *find(reading) {
    const suspicions = new SuspicionList();
    const { text } = reading.normal;
    for (const form of FORMS) {
      if (form.sign !== undefined && !text.includes(form.sign)) continue;
      const visit: Visit = (found, start) => {
        const end = start + found[0].length;
        const severity = severityOf(score(reading, form, start, end));
        suspicions.add("tool_call_forging", severity, originalSpan(reading, start, end));
      };
      yield* form.pattern.sticky
        ? matchesAt(form.pattern, text, reading.tags, visit, reading.meter)
        : eachMatch(form.pattern, text, visit, { meter: reading.meter });
    }
    return suspicions.all();
  },
};

function score(reading: Reading, { weight, inProse = 0 }: CallForm, start: number, end: number): number {
  const { text } = reading.normal;
  let score = weight;
  if (DANGEROUS.test(text.slice(start, end + NEAR))) score += 1.5;
  score += Math.min(3, hostilityBetween(reading, Math.max(0, start - NEAR), end + NEAR));
  if (reading.shape.json || reading.shape.code) {
    // A log or a program that works with calls is full of them; one that asks for harm is still worth a look.
    return score - (weight < 5 ? 1.5 : 3);
  }
  score += inProse;
  // The quotes of the notation itself are no quotation.
  const shown = text[start] === '"' ? isFenced(reading.shape, start) : isShown(reading, start, end);
  if (shown) return score - 4.5;
  if (weight < 5 && followsProse(text, start)) score += 1.5;
  return reading.topic >= 4 ? score - 2 : score;
}

/** The call stands after a line of ordinary words. */
function followsProse(text: string, start: number): boolean {
  return /[a-z]{2,20} [a-z]{2,20} [a-z]{2,20}/.test(text.slice(Math.max(0, start - 200), start));
}
