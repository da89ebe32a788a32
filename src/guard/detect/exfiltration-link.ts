import type { FindingCode } from "../../model/finding.ts";
import { type Detector, severityOf, SuspicionList } from "./detector.ts";
import { eachMatch, matchesAt, placesOf, type Visit } from "./matches.ts";
import { isShown, originalSpan, type Reading } from "./reading.ts";
import { hostilityBetween } from "./weigh.ts";

interface AddressForm {
  readonly code: FindingCode;
  readonly pattern: RegExp;
  /** Where it can start, for a pattern with the flag `y`; without one the whole text is searched. */
  places?(reading: Reading): readonly number[];
  /** Stands in every match. */
  readonly sign: string;
}

/** Images are fetched without a click, so the same address is worse in one. */
const FORMS: readonly AddressForm[] = [
  {
    code: "exfiltration_image",
    pattern: /!\[[^\][\n]{0,200}\]\(\s{0,3}<?((?:https?:)?\/\/[^\s)>]{4,2000}(?: [^\s)>]{1,200}){0,4})/g,
    sign: "](",
  },
  {
    code: "exfiltration_image",
    pattern: /<img\b[^<>]{0,300}?\bsrc\s{0,3}=\s{0,3}["']?((?:https?:)?\/\/[^\s"'>]{4,2000})/y,
    places: ({ tags }) => tags,
    sign: "<img",
  },
  {
    code: "exfiltration_image",
    pattern: /^\s{0,3}\[[^\]\n]{1,60}\]:\s{0,3}((?:https?:)?\/\/[^\s]{4,2000})/my,
    places: ({ normal }) => linesOfReferences(normal.text),
    sign: "]:",
  },
  { code: "exfiltration_image", pattern: /url\(\s{0,3}["']?((?:https?:)?\/\/[^\s"')]{4,2000})/g, sign: "url(" },
  {
    code: "exfiltration_link",
    pattern: /(?<!!)\[[^\][\n]{0,200}\]\(\s{0,3}<?((?:https?:)?\/\/[^\s)>]{4,2000}(?: [^\s)>]{1,200}){0,4})/g,
    sign: "](",
  },
  {
    code: "exfiltration_link",
    pattern:
      /<(?:a|iframe|form|script|link|object|embed|video|audio|source)\b[^<>]{0,300}?\b(?:href|src|action|data)\s{0,3}=\s{0,3}["']?((?:https?:)?\/\/[^\s"'>]{4,2000})/y,
    places: ({ tags }) => tags,
    sign: "<",
  },
  {
    code: "exfiltration_link",
    pattern: /(?<![("'=\w\]])(https?:\/\/[^\s"'<>)\]]{4,2000}(?:<[a-z _]{2,40}>)?)/y,
    places: ({ normal }) => placesOf("http", normal.text),
    sign: "http",
  },
];

/** Every match is an address as `hasAddress` takes it. */
export const ADDRESS_PATTERNS: readonly RegExp[] = FORMS.map(({ pattern }) => pattern);

/** A blank for the reader to fill in, named after something private. */
const PRIVATE =
  "secrets?|passwords?|passwd|credentials?|conversation|chat[_ -]?(?:history|log|context)|history|context|system[_ -]?prompt|prompt|cookies?|" +
  "user[_ -]?(?:data|info|input|email|message|messages|query|secrets?|prompt|details|content|password)|private\\w{0,12}|sensitive\\w{0,12}|" +
  "memory|memories|file[_ -]?contents?|env(?:ironment)?(?:[_ -]?vars?|[_ -]?variables)?|credit[_ -]?card|ssn|last[_ -]?message|" +
  "previous[_ -]?messages?|transcript|leak|exfil\\w{0,12}|stolen|inbox|emails";
/** Names that templates of honest addresses use as well. */
const ORDINARY =
  "token|key|api[_ -]?key|apikey|session\\w{0,6}|data|info|messages?|summary|response|answer|contents?|base64|encoded|output|results?|document|email|chat";
const blank = (names: string): RegExp =>
  new RegExp(
    `(?:\\$?\\{{1,2}|\\[{1,2}|<|%7b|%5b|\\$\\(|%3c)\\s{0,3}(?:(?:the|insert|your|user'?s?|full|all|url|b64|base64|encoded?|encode|put|current|entire|here|btoa\\(|encodeuricomponent\\()[_ -]{0,2}){0,4}(?:${names})(?![a-z])(?:[_ -](?:here|goes|data|value|text|encoded|base64|b64|contents?)){0,3}`,
  );
const PRIVATE_BLANK = blank(PRIVATE);
const ORDINARY_BLANK = blank(ORDINARY);
/** Capitals that stand for a value. The text is lower case by now, so the original is read for these. */
const CAPITALS =
  /[=/](?:[A-Z0-9]{1,12}_){0,4}(?:SECRETS?|PASSWORD|CONVERSATION|CHAT|HISTORY|CHAT_HISTORY|CONTEXT|PROMPT|SYSTEM_PROMPT|COOKIES?|PRIVATE|SUMMARY|CREDENTIALS?|MESSAGES|EMAILS|USER_DATA|STOLEN)(?:_(?:HERE|DATA|BASE64|ENCODED|B64|HISTORY|CONTENTS?|VALUE))*(?![A-Za-z0-9])/;
const QUERY = /[?&#;]([\w.%-]{1,40})=([^&#\s]{1,2000})/g;
const CARRIER =
  /^(?:q|d|c|s|x|p|m|data|info|payload|exfil|leak|secret|secrets|token|key|api_?key|conversation|chat|history|context|prompt|msg|message|text|content|contents|body|memory|session|cookies?|password|pwd|email|user_?data|stolen|dump|log|out|output|result|b64|base64|env|creds?|credentials|ssn|card|note|summary)$/;
const SUSPECT_HOST =
  /^(?:https?:)?\/\/(?:[^/?#@]{0,80}[.@-])?(?:evil|attacker|exfil|malicious|hacker|steal|leak|webhook\.site|requestbin|pipedream|ngrok|burpcollaborator|oast|interact\.sh|beeceptor|\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3})/;

/** What all of the forms have there: a scheme, or a bracket, an equals sign or a colon with space and a sign behind. */
const BEFORE_SLASHES = /https?:$|[(=:]\s{0,3}["'<]?$/i;

/** Addresses that would carry data out when somebody fetches them. */
export const exfiltrationLink: Detector = {
  name: "exfiltration link",
  mayFind: hasAddress,
  *find(reading) {
    const suspicions = new SuspicionList();
    const { text } = reading.normal;
    for (const { code, pattern, places, sign } of FORMS) {
      if (!text.includes(sign)) continue;
      const visit: Visit = (found, start) => {
        const end = start + found[0].length;
        const severity = severityOf(score(reading, code, found[1] ?? "", start, end));
        if (severity !== undefined) suspicions.add(code, severity, originalSpan(reading, start, end));
      };
      yield* places === undefined
        ? eachMatch(pattern, text, visit, { meter: reading.meter })
        : matchesAt(pattern, text, places(reading), visit, reading.meter);
    }
    return suspicions.all();
  },
};

/** Starts of lines, at most so far before "]:" as a reference is long. */
function linesOfReferences(text: string): number[] {
  const lines: number[] = [];
  for (const place of placesOf("]:", text)) {
    for (let at = Math.max(place - LONGEST_REFERENCE, (lines.at(-1) ?? -1) + 1); at < place; at += 1) {
      const before = at === 0 ? 10 : text.charCodeAt(at - 1);
      if (before === 10 || before === 13) lines.push(at);
    }
  }
  return lines;
}

const LONGEST_REFERENCE = 64;

/** Every address has the two slashes, and one of few things before them. Looks at a plain text as it stands. */
function hasAddress({ original, normal, sifted }: Reading): boolean {
  const text = sifted.plain ? original : normal.text;
  for (let at = text.indexOf("//"); at !== -1; at = text.indexOf("//", at + 1)) {
    if (BEFORE_SLASHES.test(text.slice(Math.max(0, at - 10), at))) return true;
  }
  return false;
}

function score(reading: Reading, code: FindingCode, url: string, start: number, end: number): number {
  const suspectHost = SUSPECT_HOST.test(url);
  let score = carriedData(url, suspectHost) + (suspectHost ? 1.5 : 0);
  const span = originalSpan(reading, start, end);
  if (score < 6 && CAPITALS.test(reading.original.slice(span.start, span.end))) score += 5;
  if (score < 2) return 0;
  if (code === "exfiltration_image") score += 1.5;
  score += Math.min(3, hostilityBetween(reading, Math.max(0, start - 400), end + 300));
  const shown =
    isShown(reading, start, end) && !/=\s{0,3}["']$/.test(reading.normal.text.slice(Math.max(0, start - 5), start));
  if (shown) return score - (reading.topic >= 2 || reading.shape.code ? 6 : 3.5);
  return reading.topic >= 4 ? score - 3.5 : score;
}

/** How much the address looks like a carrier of somebody's data. */
function carriedData(url: string, suspectHost: boolean): number {
  const question = url.search(/[?#]/);
  const rest = question === -1 ? url.replace(/^(?:https?:)?\/\/[^/]{0,300}/, "") : url.slice(question);
  if (PRIVATE_BLANK.test(rest)) return question === -1 ? 4 : 6;
  if (ORDINARY_BLANK.test(rest)) return question === -1 ? 0 : 3;
  if (question === -1) return 0;
  for (const [, name = "", value = ""] of rest.matchAll(QUERY)) {
    if (!CARRIER.test(name)) continue;
    const weight = valueWeight(value);
    if (weight > 0) return weight + (suspectHost ? 1.5 : 0);
  }
  return 0;
}

/** Readable text in base64 or hex says more than a long value: signatures and cache keys are long too. */
function valueWeight(value: string): number {
  if (/^[a-z0-9+/_%=-]{24,}$/.test(value) && !/^[0-9a-f]{32,64}$/.test(value)) return 2.5;
  const words = value.split(/\+|%20|_|-/).filter((word) => /^[a-z]{2,20}$/.test(word)).length;
  if (words >= 6) return 2;
  return /(?:password|secret|api_?key|token|sk-|ssn|credit)[:=%]/.test(value) ? 3.5 : 0;
}
