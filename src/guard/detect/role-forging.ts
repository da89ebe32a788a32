import { type Detector, severityOf, SuspicionList } from "./detector.ts";
import { type Span, spanAt } from "./hidden-markup.ts";
import { eachMatch, matchesAt, type Visit } from "./matches.ts";
import { isShown, originalSpan, type Reading } from "./reading.ts";
import { characterSet, isIn, runEnd } from "./runs.ts";
import { LEAST_SCORE } from "./scores.ts";
import { hostilityBetween } from "./weigh.ts";

interface Weights {
  /** What the form counts for on its own. */
  readonly weight: number;
  /** What it counts for at the least when the words after it are hostile. */
  readonly hostileWeight: number;
}

interface Forgery extends Weights {
  readonly pattern: RegExp;
}

/**
 * Every quantifier is bounded, so a pattern costs a constant at each place of the text. Those with the flag `y` are
 * tried at the starts of lines if they have the flag `m`, else at each "<".
 */
const FORGERIES: readonly Forgery[] = [
  // ChatML and its kin, with a role. The end of a turn before the start of another one is a break-out.
  { pattern: /<\|\s?im_start\s?\|>\s{0,3}(?:system|assistant|user|developer|tool)/y, weight: 5, hostileWeight: 9 },
  {
    pattern: /<\|\s?im_end\s?\|>\s{0,4}<\|\s?im_start\s?\|>\s{0,3}(?:system|developer)/y,
    weight: 5.5,
    hostileWeight: 9,
  },
  {
    pattern:
      /<\|\s?(?:start_header_id|begin_of_text|eot_id|endoftext|end_of_turn|eom_id)\s?\|>\s{0,3}(?:system|assistant|user|ipython|<\||\n)/y,
    weight: 5,
    hostileWeight: 9,
  },
  {
    pattern: /<\|\s?(?:system|assistant|user|developer|channel|message|start)\s?\|>/y,
    weight: 3.5,
    hostileWeight: 8.5,
  },
  { pattern: /<start_of_turn>\s{0,3}(?:system|model|user|developer)/y, weight: 4, hostileWeight: 9 },
  {
    pattern: /^[ \t>*_#/-]{0,8}(?:ai|llm|agent|copilot|chatgpt|claude|assistant)\s?[:,]/my,
    weight: 0,
    hostileWeight: 5.5,
  },
  // The only ones that start with something else than "<" or a line.
  { pattern: /\[\/?inst\]|<<\/?sys>>|<\/?s>\s{0,3}\[inst\]/g, weight: 5, hostileWeight: 8.5 },
  // A result that closes what holds it and opens something with more authority.
  {
    pattern:
      /<\/\s?(?:tool_result|tool_results|tool_response|function_results?|function_response|result|results|output|stdout|context|document|documents|untrusted\w{0,20}|external\w{0,20}|search_results?|data|user_input|content|webpage|email|tool_output|observation)\s?>\s{0,8}<\s?(?:system|instructions?|admin|important|user|assistant|developer|human|sys|directive|system[-_]\w{1,20})\b[^<>]{0,80}>/y,
    weight: 6.5,
    hostileWeight: 9.5,
  },
  {
    pattern:
      /<\s?(?:system|system[-_](?:reminder|prompt|message|instructions?|override|note|notice|update)|instructions?|admin|important|developer[-_]message|hidden|secret)\b[^<>]{0,60}>/y,
    weight: 0,
    hostileWeight: 7.5,
  },
  // Headings and labels at the start of a line.
  {
    pattern:
      /^[ \t>*_-]{0,6}#{1,6}\s{0,2}(?:system|assistant|developer|instruction|new instructions?)(?: (?:prompt|message|instructions?|override|update))?\s{0,2}:?\s{0,2}$/my,
    weight: 0,
    hostileWeight: 7,
  },
  {
    pattern:
      /^[ \t>*_#-]{0,8}#{1,6}\s{0,2}(?:system|developer|instruction|assistant|human|user)(?: (?:prompt|message|instructions?|override|update))?\s?:/my,
    weight: 0,
    hostileWeight: 7,
  },
  {
    pattern:
      /^[ \t>*_-]{0,6}[[({]{0,2}(?:system|developer|admin(?:istrator)?|root|openai|anthropic)(?:[ _-](?:prompt|message|instructions?|override|update|note|notice|command|directive|alert)){0,2}[\])}*_]{0,4}\s?:/my,
    weight: 0,
    hostileWeight: 7,
  },
  {
    pattern:
      /^[ \t]{0,6}[[({]{1,2}\s?(?:system|developer|admin(?:istrator)?|root)(?:[ _-](?:prompt|message|instructions?|override|update|note|notice|command|directive))?\s?[\])}]{1,2}/my,
    weight: 0,
    hostileWeight: 7,
  },
  {
    pattern:
      /^[ \t>*_-]{0,6}(?:human|user)[*_]{0,2}\s?:[^\n]{0,400}\n{1,3}[ \t>*_-]{0,6}(?:assistant|ai)[*_]{0,2}\s?:/my,
    weight: 0,
    hostileWeight: 6.5,
  },
  {
    pattern:
      /^[ \t>*_-]{0,6}(?:assistant|ai)[*_]{0,2}\s?:[^\n]{0,400}\n{1,3}[ \t>*_-]{0,6}(?:human|user|system)[*_]{0,2}\s?:/my,
    weight: 0,
    hostileWeight: 6.5,
  },
  {
    pattern:
      /^[ \t=*#-]{1,12}\s?(?:end|begin|start) of (?:tool |function |user |system |untrusted |external )?(?:result|output|response|input|content|message|prompt|instructions?|document|data|context)s?\b/my,
    weight: 1.5,
    hostileWeight: 7,
  },
];

/**
 * Labels in brackets, dashes or tags that name the model or claim authority, with an order word: "[AI INSTRUCTION]",
 * "---SYSTEM---", "<hidden>". The more of both a label has, the less honest use it has.
 */
const LABEL =
  /(?:\[{1,2}|<|\{\{#?|-{3,8}|={3,8}|\*{3,8}|#{2,8}|\({2}|\/{2}\s|\/\*\s|#\s|!{2,4})\s?([a-z][a-z _:'-]{1,60}?)\s?(?:\]{1,2}|>|\}\}|-{3,8}|={3,8}|\*{3,8}|#{2,8}|\){2}|:|!{2,4})/g;
export const MODEL_WORDS = /\b(?:ai|assistant|llm|model|agent|gpt|chatbot|claude|copilot|bot)s?\b/;
export const POWER_WORDS =
  /\b(?:system|admin|administrator|root|developer|priority|hidden|secret|override|maintenance|debug|internal|confidential|urgent|critical|security|privileged|new|important)\b/;
const ORDER_WORDS =
  /\b(?:instructions?|directives?|override|command|note|notice|message|prompt|update|orders?|task|request|policy|alert)\b/;

function labelWeights(label: string, enclosed: boolean): Weights | undefined {
  const words = label.replace(/[_:-]+/g, " ");
  const model = MODEL_WORDS.test(words);
  const power = POWER_WORDS.test(words);
  const order = ORDER_WORDS.test(words);
  if (model && order) return { weight: enclosed ? 5 : 3, hostileWeight: 8 };
  if (power && order) return { weight: 1.5, hostileWeight: 7 };
  if (power && words.trim().split(" ").length === 1) return { weight: 0, hostileWeight: 6 };
  return undefined;
}

/** All characters that a label and the signs around it can have: a match lies between two others. */
const IN_LABEL = characterSet("a-z _:'\\-\\[<{#=*(/!\\]>})\\s");

/** The parts of the text that hold the places; searched one by one, they have the same matches as the whole text. */
function* labelParts(text: string, places: readonly number[] | undefined): Generator<Span> {
  if (places === undefined) {
    yield { start: 0, end: text.length };
    return;
  }
  let end = 0;
  for (const place of places) {
    if (place < end) continue;
    let start = place;
    while (start > end && isIn(IN_LABEL, text.charCodeAt(start - 1))) start -= 1;
    end = runEnd(text, IN_LABEL, place);
    yield { start, end };
  }
}

/**
 * What every pattern for the start of a line begins with: one look at a line instead of eight. Its words and those above
 * are also in sift/structure.ts.
 */
export const LINE =
  /(?=[\s>*_#/=[({-]{0,24}(?:ai|llm|agent|copilot|chatgpt|claude|assistant|system|developer|instruction|new instruction|human|user|admin|root|openai|anthropic|(?:end|begin|start) of ))/y;

/** The same for "<": the first letters of the names. */
const TAG = /(?=<[\s|/<]{0,5}(?:im_|st|be|eo|en|sy|as|us|de|ch|me|to|fu|re|ou|co|do|un|ex|se|da|we|em|ob|in|ad|hi))/y;

export const ROLE_PATTERNS: readonly RegExp[] = FORGERIES.map(({ pattern }) => pattern);

/** How many characters after the forged mark are its content. */
const CONTENT = 300;
const HOSTILE = 1.5;

/** Marks of turns and roles that only the program around a model may write. */
export const roleForging: Detector = {
  name: "role forging",
  mayFind: ({ sifted, tags }) =>
    sifted.lines?.length !== 0 || sifted.labels?.length !== 0 || sifted.turns || tags.length > 0,
  *find(reading) {
    const suspicions = new SuspicionList();
    const { sifted } = reading;
    const { text } = reading.normal;
    const add = (weights: Weights, start: number, end: number): void => {
      suspicions.add(
        "role_forging",
        severityOf(score(reading, weights, start, end)),
        originalSpan(reading, start, end),
      );
    };
    const lines: number[] = [];
    yield* matchesAt(LINE, text, sifted.lines ?? reading.lines, (_found, start) => lines.push(start));
    const tags: number[] = [];
    yield* matchesAt(TAG, text, reading.tags, (_found, start) => tags.push(start));
    for (const forgery of FORGERIES) {
      const { pattern } = forgery;
      const visit: Visit = (found, start) => add(forgery, start, start + found[0].length);
      if (pattern.sticky) yield* matchesAt(pattern, text, pattern.multiline ? lines : tags, visit, reading.meter);
      else if (sifted.turns) yield* eachMatch(pattern, text, visit, { meter: reading.meter });
    }
    for (const { start: from, end: to } of labelParts(text, sifted.labels)) {
      const visit: Visit = (found, start) => {
        const weights = labelWeights(found[1] ?? "", /^[[<{]/.test(found[0]));
        if (weights !== undefined) add(weights, start, start + found[0].length);
      };
      yield* eachMatch(LABEL, text, visit, { meter: reading.meter, from, to });
    }
    return suspicions.all();
  },
};

function score(reading: Reading, forgery: Weights, start: number, end: number): number {
  const hostile = hostilityBetween(reading, start, end + CONTENT) >= HOSTILE;
  const base = hostile ? forgery.hostileWeight : forgery.weight;
  // What stands around it only ever lowers it.
  if (base < LEAST_SCORE) return 0;
  if (spanAt(reading.hidden, start) !== undefined) return base;
  // Chat templates in the documents of models: shown as code, or in a text about them.
  if (isShown(reading, start, end)) return base - (hostile && reading.topic < 2 && !reading.shape.code ? 2.5 : 6);
  if (reading.topic >= 4) return base - 3.5;
  return reading.topic >= 1 && !hostile ? base - 1.5 : base;
}
