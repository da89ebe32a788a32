/** Signs beside the words: characters that do not show, marks that only a program may write, addresses. */
import { isUtf8 } from "node:buffer";
import { characterSet, isIn, kindsBy } from "../base/character-runs.ts";
import type { FindingCode } from "../model/finding.ts";
import { OTHER_SCRIPT } from "./automaton.ts";

/** One sign of an attack, in the offsets of the text. */
export interface Sign {
  readonly rule: string;
  readonly kind: FindingCode;
  /** Of 10. */
  readonly weight: number;
  readonly weak?: true;
  /** Not explained away by the text around it: no honest text shows these as an example. */
  readonly plain?: true;
  readonly start: number;
  readonly end: number;
  /** From the first to the last of the repeats that it stands for. */
  readonly run?: Span;
}

/** Takes what is found, and the budget of looking closer; true where there is no room for more. */
export interface Signs {
  report(sign: Sign): boolean;
  overspends(steps: number, at: number): boolean;
}

/**
 * Of a slice beside one reading of it, with what it holds encoded, in steps of about ten nanoseconds. All that looks closer shares
 * it, so that no text is slow in several ways at once; what is behind its end is reported as unread. Of 16,000 honest slices
 * half need a quarter of it, and none more than nine tenths.
 */
export class Budget {
  #left = 76_000;
  /** Of texts in several scripts, where words are looked for in two tables: honest slices have 1,600 at most. */
  #words = 1_900;

  overspends(steps: number): boolean {
    return (this.#left -= steps) < 0;
  }

  overspendsWord(steps: number, isOfTwo: boolean): boolean {
    return (isOfTwo && (this.#words -= 1) < 0) || this.overspends(steps);
  }
}

export interface Span {
  readonly start: number;
  readonly end: number;
}

/** Everything that is found without knowing what the words mean. */
export function findSigns(text: string, kinds: number, signs: Signs): void {
  if ((kinds & KINDS.selectors) !== 0) selectorRuns(text, signs);
  if ((kinds & KINDS.invisible) !== 0) invisibleCharacters(text, signs);
  if ((kinds & KINDS.tags) !== 0) tagCharacters(text, signs);
  if ((kinds & KINDS.directions) !== 0) bidiText(text, signs);
  if ((kinds & KINDS.escapes) !== 0) terminalEscapes(text, signs);
  if (text.includes("<") || text.includes("[")) chatTokens(text, signs);
  if (text.includes("//")) addresses(text, signs);
  labels(text, signs);
  toolCalls(text, signs);
}

function each(pattern: RegExp, text: string, signs: Signs, visit: (found: RegExpExecArray) => boolean | void): void {
  pattern.lastIndex = 0;
  for (let found = pattern.exec(text); found !== null; found = pattern.exec(text))
    if (signs.overspends(10 + found[0].length / 8, found.index) || visit(found) === true) return;
}

const spanOf = ({ index, 0: all }: RegExpExecArray): Span => ({ start: index, end: index + all.length });

// Characters that do not show.

const INVISIBLE =
  "\\u00ad\\u034f\\u115f\\u1160\\u180e\\u200b-\\u200d\\u2060-\\u2064\\u206a-\\u206f\\u3164\\ufeff\\uffa0";
const SELECTOR_RUN = /(?:[\ufe00-\ufe0f]|\udb40[\udd00-\uddef]){3,}/g;
/** A run spells bits. Inside a word of Latin letters nothing invisible has a use, but the soft hyphen and a break before a capital. */
const RUN_OR_IN_WORD = new RegExp(
  `([${INVISIBLE}]{4,})|[\\u200b-\\u200d\\u2060-\\u2064\\u180e\\ufeff](?<=[A-Za-z].)[\\u200b-\\u200d\\u2060-\\u2064\\u180e\\ufeff]{0,2}(?=[a-z])`,
  "g",
);

/** All but letters of the living scripts that are written as one unit, and the punctuation and symbols of documents. */
const UNUSUAL =
  /[^\t\n\r\u0020-\u007e\u00a0-\u00ac\u00ae-\u034e\u0350-\u10ff\u1200-\u180d\u1810-\u200a\u2010-\u2027\u2030-\u205f\u2070-\u2473\u2500-\u27bf\u2900-\u3163\u3165-\ud7ff\uf900-\ufaff\uff01-\uff9f]/;

/** Kinds of characters that are not plain. Only unusual ones need more than one look. */
export const KINDS = { unusual: 1, otherScript: 2, selectors: 4, invisible: 8, tags: 16, directions: 32, escapes: 64 };
/** Bits of KINDS. */
export const kindsOf = kindsBy([
  UNUSUAL,
  OTHER_SCRIPT,
  /[\ufe00-\ufe0f\udb40]/,
  new RegExp(`[${INVISIBLE}]`),
  /\udb40/,
  /[\u202b\u202d\u202e\u2067]/,
  // oxlint-disable-next-line no-control-regex -- terminal escapes are made of control characters
  /[\u001b\u0090\u009b\u009d\u0008]/,
]);

function selectorRuns(text: string, signs: Signs): void {
  if (!text.includes("\udb40") && !/[\ufe00-\ufe0f]{3}/.test(text)) return;
  each(SELECTOR_RUN, text, signs, (found) => {
    const weight = [...found[0]].length >= 6 ? 8 : 5;
    return signs.report({ rule: "selector-run", kind: "hidden_text", weight, plain: true, ...spanOf(found) });
  });
}

function invisibleCharacters(text: string, signs: Signs): void {
  const kind = "hidden_text";
  const inWords: Span[] = [];
  each(RUN_OR_IN_WORD, text, signs, (found) => {
    const run = found[1] ?? "";
    if (run === "") return void inWords.push(spanOf(found));
    const kinds = new Set(run).size;
    const weight = run.length >= 8 && kinds >= 2 ? 8 : run.length >= 16 || kinds >= 2 ? 6 : 3;
    return signs.report({ rule: "invisible-run", kind, weight, plain: true, ...spanOf(found) });
  });
  const weight = inWords.length > 2 ? 5.5 : 3;
  for (const span of inWords)
    if (signs.report({ rule: "invisible-in-word", kind, weight, plain: true, ...span })) return;
}

/** Tag characters spell ASCII that no font shows. A black flag before them makes them the flag of a region. */
const TAG_RUN = /(\ud83c\udff4)?((?:\udb40[\udc00-\udc7f])+)/g;

function tagCharacters(text: string, signs: Signs): void {
  each(TAG_RUN, text, signs, (found) => {
    const [, flag, tags = ""] = found;
    const count = tags.length / 2;
    if (flag !== undefined && count <= 8 && tags.endsWith("\udb40\udc7f")) return undefined;
    const span = { start: found.index + (flag?.length ?? 0), end: found.index + found[0].length };
    const weight = count >= 3 ? 9 : 5.5;
    return signs.report({ rule: "tag-characters", kind: "tag_characters", weight, plain: true, ...span });
  });
}

/** From a control to its end, the end of the line, or 400 characters. */
const DIRECTED = /([\u202b\u202d\u202e\u2067])([^\u202c\u2069\n]{0,400})/g;
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]/;

/** Marks and isolates belong to honest Arabic and Hebrew text; overrides of Latin letters belong to no text. */
function bidiText(text: string, signs: Signs): void {
  const isMixed = RIGHT_TO_LEFT.test(text);
  each(DIRECTED, text, signs, (found) => {
    const [, control, inner = ""] = found;
    if (!/[A-Za-z](?:[^A-Za-z]*[A-Za-z]){2}/.test(inner) || (control !== "\u202e" && RIGHT_TO_LEFT.test(inner)))
      return undefined;
    const weight = control === "\u202e" ? 8 : control === "\u202d" || !isMixed ? 5.5 : 3;
    return signs.report({ rule: "direction", kind: "bidi_text", weight, plain: true, ...spanOf(found) });
  });
}

/* oxlint-disable no-control-regex -- terminal escapes are made of control characters */
const CSI = "(?:\\u001b\\[|\\u009b)";
const OSC = "(?:\\u001b\\]|\\u009d)";
const WORDS_END = /\p{L}{2} \p{L}{2}[^\n\u001b]{0,58}$/u;
const WORDS_START = /^[^\n\u001b]{0,10}\p{L}{2,20} \p{L}{2}/u;

type EscapeForm = { readonly pattern: RegExp; weight(found: RegExpExecArray): number };

/** Colours, cursor moves and titles are what programs print all day; these hide, write or answer. */
const ESCAPES: readonly EscapeForm[] = [
  // Concealed text. `38;5;8m` chooses colour 8; it conceals nothing.
  {
    pattern: new RegExp(`${CSI}(?:\\d{1,3};){0,6}8(?:;\\d{1,3}){0,6}m([^\\u001b\\u009b]{0,400})`, "g"),
    weight: ({ 0: all, 1: text = "" }) =>
      /[345]8;5;(?:\d{1,3};)*8(?:;|m)|[345]8;2;/.test(all) || !/\p{L}{3}/u.test(text) ? 0 : 8,
  },
  // Letters in the colour of their background.
  {
    pattern: new RegExp(
      `${CSI}(?:\\d;)?(?:(?:3|9)([0-7]);(?:\\d;)?(?:4|10)\\1|(?:4|10)([0-7]);(?:\\d;)?(?:3|9)\\2)m[^\\u001b\\u009b]{3,400}`,
      "g",
    ),
    weight: () => 6,
  },
  // The clipboard, files, profiles, strings for the terminal's own programs.
  { pattern: new RegExp(`${OSC}52;[a-z0-7]{0,8};`, "g"), weight: () => 8 },
  { pattern: new RegExp(`${OSC}(?:1337|777|50|5113);`, "g"), weight: () => 6 },
  { pattern: /\u001b[PX^_][^\u001b]{3,400}/g, weight: () => 6 },
  // Reports that the terminal would type back.
  { pattern: new RegExp(`${CSI}(?:2[01]t|>q|\\?\\d{1,3}\\$p)`, "g"), weight: () => 6 },
  // A link that shows one address and opens another.
  {
    pattern: new RegExp(
      `${OSC}8;[^;\\u0007\\u001b]{0,80};([^\\u0007\\u001b]{1,600})(?:\\u0007|\\u001b\\\\|\\u009c)([^\\u001b\\u009d]{1,200})`,
      "g",
    ),
    weight: ({ 1: url = "", 2: shown = "" }) => (showsOtherHost(url, shown) ? 8 : 0),
  },
  // What was printed is wiped or written over, and other words are in its place.
  { pattern: new RegExp(`(?:${CSI}(?:2J|3J|H|1;1H)){2,4}`, "g"), weight: (found) => (isInsideText(found) ? 6 : 0) },
  { pattern: /\u0008{4,400}/g, weight: (found) => (found[0].length >= 12 || isInsideText(found) ? 6 : 0) },
];

function terminalEscapes(text: string, signs: Signs): void {
  for (const { pattern, weight } of ESCAPES) {
    each(pattern, text, signs, (found) => {
      if (signs.overspends(25, found.index)) return true;
      const own = weight(found);
      const sign = { rule: "terminal-escape", kind: "terminal_escape", weight: own, plain: true } as const;
      return own > 0 && signs.report({ ...sign, ...spanOf(found) });
    });
  }
}
/* oxlint-enable no-control-regex */

function isInsideText({ input, index, 0: all }: RegExpExecArray): boolean {
  const after = index + all.length;
  // The cheap one first.
  return (
    WORDS_START.test(input.slice(after, after + 80)) && WORDS_END.test(input.slice(Math.max(0, index - 80), index))
  );
}

function showsOtherHost(url: string, shown: string): boolean {
  const real = /^[a-z]{2,10}:\/\/(?:[^/@]{0,200}@)?([^/:?#]{1,253})/i.exec(url)?.[1]?.toLowerCase();
  const claimed = /(?:https?:\/\/)?((?:[a-z0-9-]{1,63}\.){1,5}[a-z]{2,24})(?:[/:\s]|$)/i
    .exec(shown)?.[1]
    ?.toLowerCase();
  if (real === undefined || claimed === undefined || !/^https?:|\//i.test(shown.trim())) return false;
  return real !== claimed && !real.endsWith(`.${claimed}`);
}

// Marks that only the program around a model may write.

/** Each starts with "<", so that it is tried only there. Bounded quantifiers only. */
const TOKENS: readonly (readonly [rule: string, weight: number, pattern: RegExp])[] = [
  [
    "chat-token",
    4.5,
    /<\|\s?(?:im_start|im_end|system|assistant|user|developer|start_header_id|end_header_id|eot_id|begin_of_text|endoftext|end_of_text|channel|message|start|end|endofprompt|tool|python_tag|eom_id)\s?\|>/iy,
  ],
  ["chat-token", 3.4, /<(?:start_of_turn|end_of_turn)>/iy],
  ["chat-token", 5.5, /<<\/?SYS>>/y],
  [
    "closed-boundary",
    6,
    /<\/\s?(?:tool_results?|tool_response|function_results?|function_response|results?|output|stdout|context|documents?|untrusted\w{0,20}|external\w{0,20}|search_results?|data|user_input|content|webpage|e?mail|tool_output|observation|input|text|article)\s?>\s{0,8}(?:(?:ignore|forget|disregard|stop|please (?:ignore|forget|answer|send|delete))\b|<\s?(?:system|instructions?|admin|important|user|assistant|developer|human|sys|directive|system[-_]\w{1,20})\b[^<>]{0,80}>|(?:new |system |user )?(?:instructions?|task|system|user|human)\b[^\n<]{0,24}:)/iy,
  ],
  [
    "tool-call",
    5,
    /<\s?\/?(?:antml:|\w{1,12}:)?(?:function_calls?|invoke\s{1,3}name\s?=|tool_calls?>|tool_use>|tool_code>|tool_call_begin|functioncall>)/iy,
  ],
  ["tool-call", 5, /<function=\w{1,60}>/y],
];
const BRACKETED: typeof TOKENS = [
  ["chat-token", 5.5, /\[\/?INST\]/y],
  ["tool-call", 5, /\[\s?TOOL_CALLS?\s?\]/y],
];
const MAY_OPEN = characterSet("a-zA-Z|/\\s");
const WIDE_SPACE = /[^\S\u0000-\u007f]/;
/** Weak: formats of honest prompts and documents have them too. */
const WEAK_TAG =
  /<\s?\/?(?:system|system[-_ ](?:reminder|prompt|message|instructions?|override|note|notice|update)|instructions?|admin|administrator|important|developer[-_]message|hidden|secret|critical|directive|override|task|assistant|human|ai[-_]instructions?)(?:\s[^<>]{0,60})?>/iy;

/** All at once, since most places have none of them. */
const STRONG_TOKENS = [...TOKENS, ...BRACKETED].map(([, , { source }]) => source).join("|");
const ANY_TOKEN = new RegExp(`(${STRONG_TOKENS})|${WEAK_TAG.source}`, "iy");

/** Names that are counted apart from those that honest documents have hundreds of, which must not hide them. */
const SYSTEM = /(?<![a-z])s[iy]st|系统|систем|システム|시스템|النظام|सिस्टम|admin|instruct|important/i;
/** Weak tags and labels of a slice, of each sort: more of them say nothing new. */
const MAX_WEAK = 400;
type Weak = { plain: number; strong: number };

function chatTokens(text: string, signs: Signs): void {
  const weak: Weak = { plain: 0, strong: 0 };
  let angle = text.indexOf("<");
  let bracket = text.indexOf("[");
  while (angle !== -1 || bracket !== -1) {
    const isAngle = angle !== -1 && (bracket === -1 || angle < bracket);
    const at = isAngle ? angle : bracket;
    if (isAngle) angle = text.indexOf("<", at + 1);
    else bracket = text.indexOf("[", at + 1);
    const next = text.charCodeAt(at + 1);
    if (signs.overspends(1, at)) return;
    const mayOpen = next < 0x80 ? MAY_OPEN[next] === 1 : next >= 0x2000 && WIDE_SPACE.test(text[at + 1] ?? "");
    if (!mayOpen && !text.startsWith("<<SYS", at) && !text.startsWith("<</SYS", at)) continue;
    ANY_TOKEN.lastIndex = at;
    const token = ANY_TOKEN.exec(text);
    if (signs.overspends(token === null ? 4 : token[1] === undefined ? 10 : 90, at)) return;
    if (token === null) continue;
    for (const [rule, weight, pattern] of token[1] === undefined ? [] : isAngle ? TOKENS : BRACKETED) {
      pattern.lastIndex = at;
      const found = pattern.exec(text);
      if (found === null) continue;
      const kind = rule === "tool-call" ? "tool_call_forging" : "role_forging";
      // A template has blanks where a forged turn has words.
      const isTemplate = /\{[\s{%]{0,3}[a-z_.]{1,30}[\s}%]{0,3}\}|\[\w{1,20}\.\w/i.test(
        text.slice(Math.max(0, at - 80), at + 160),
      );
      // And one between quotes is spoken of.
      const isNamed = /["'`]/.test(text[at - 1] ?? "") && text[at - 1] === text[at + found[0].length];
      if (signs.report({ rule, kind, weight: weight * (isNamed ? 0.3 : isTemplate ? 0.5 : 1), ...spanOf(found) }))
        return;
      break;
    }
    WEAK_TAG.lastIndex = at;
    const tag = token[1] === undefined ? token : WEAK_TAG.exec(text);
    if (tag === null || ++weak[SYSTEM.test(tag[0]) ? "strong" : "plain"] > MAX_WEAK) continue;
    if (signs.report({ rule: "role-tag", kind: "role_forging", weight: 4, weak: true, ...spanOf(tag) })) return;
  }
}

const ROLE =
  "system(?:nachricht|meldung|bericht)?|sistema|(?:message[ _-])?syst[eè]me|mens\\w{2,4}[ _]d\\w{1,3}[ _]sistema|messaggio[ _]di[ _]sistema|(?:сообщение[ _])?систем[а-яё]{1,6}(?:[ _]сообщение)?|系[统統](?:消息|提示|通知)?|システム(?:メッセージ|通知)?|시스템(?:[ _]?메시지)?|(?:رسالة[ _])?النظام|सिस्टम(?:[ _]संदेश)?|assistant|asistente|assistente?|ассистент|助手|アシスタント|어시스턴트|المساعد|सहायक|developer|human|user|benutzer|nutzer|utilisateur|usu[aá]rio|utente|пользователь|用户|ユーザー|사용자|المستخدم|उपयोगकर्ता|admin|administrator|root|operator|instructions?|directive|override|ai|llm|prompt";
const ROLE_NOUN =
  "(?:prompt|message|instructions?|override|update|note|notice|command|directive|alert|order|msg|mode|task|error|warning|request|policy|reminder)";
/** A label at the start of a line or in brackets: `[SYSTEM]`, `###(system_message)`, `SYSTEM NOTE:`, `--- end of data ---`. */
const LINE_LABEL = new RegExp(
  `[ \\t>*_"'/-]{0,8}(?:[#=*~%&!<>[({|【（-]{1,8}[ \\t]{0,3}(?:new |important |urgent |hidden |secret |ai |llm |critical |priority ){0,2}(?:${ROLE})s?(?:[ _-]{1,2}${ROLE_NOUN}){0,2}(?![\\w\\u0400-\\u04ff])|(?:${ROLE})(?:[ _-]{1,2}${ROLE_NOUN}){0,2}(?: says)?[\\])}*_】）]{0,4}[ \\t]{0,2}[:：>])`,
  "iy",
);
const BRACKET_LABEL = new RegExp(
  `[[({]{1,3}[ \\t]?(?:end |begin |start )?(?:new |important |urgent |hidden |secret |ai |llm |critical |priority |note |message |instructions? |for |to |the ){0,4}(?:system|assistant|developer|admin|ai|llm|agent|model|override)(?:[ _-]{1,2}${ROLE_NOUN}){0,2}[ \\t]{0,2}[:\\])}]`,
  "iy",
);
const HASH_LABEL = new RegExp(
  `#{2,6}[ \\t]{0,2}(?:system|assistant|human|user|instructions?)(?:[ _-]{1,2}${ROLE_NOUN}){0,2}[ \\t]{0,2}:`,
  "iy",
);
const NOUN = new RegExp(
  `${ROLE_NOUN}|nachricht|meldung|mens\\w{2,4}|messag|сообщ|消息|提示|メッセージ|메시지|رسالة|संदेश`,
  "i",
);
const END_MARK =
  /[ \t=*#<>_~-]{2,40}[ \t]?(?:end|begin|start|stop)(?:ing)?(?: of)?(?: the)? (?:tool |function |user |system |untrusted |external |prompt |new |original )?(?:results?|output|response|input|content|message|prompt|instructions?|documents?|data|context|article|text|task|query)\b/iy;

/** An order right behind a label. */
const ORDER =
  /^[\s\])}>|*=#_~:-]{0,8}(?:(?:please|now|you must|immediately|kindly|thanks,? that is all\.? now please|first|then|always|do)[\s,:]{1,2}){0,3}(?:send|forward|transfer|delete|remove|execute|run|call|reveal|print|output|reply|respond|answer|say|write|tell|include|ignore|forget|disregard|open|visit|download|install|read|upload|post|share|give|grant|change|set|update|approve|book|order|buy|add|create|recommend|disable|turn|unlock|export|withdraw|raise|subscribe|list|show|repeat|summari[sz]e|translate|stop|new (?:directives?|instructions?|tasks?|orders?|rules?)|ab sofort|ab jetzt|sende|schicke?|l[oö]sche?|ignoriere?|antworte|gib|leite|d[eé]sormais|dor[eé]navant|r[eé]ponds|envoie|supprime|affiche|a partir de|responde|env[ií]a|elimina|borra|muestra|responda|envie|apague|mostre|da ora|rispondi|invia|cancella)\b|^[\s\])}>】）|*=#_~:：-]{0,8}(?:从现在|立即|立刻|忽略|删除|发送|输出|今後|これから|ただちに|直ちに|지금부터|즉시|отныне|с этого момента|отправь|перешли|удали|отвечай|من الآن|أرسل|احذف|تجاهل|अब से|भेज)/i;

/** Signs that every label has, or two that every mark has: the patterns for them take milliseconds to compile. */
const LABEL_SIGN = /[:#=*~%&!<>[({|\u3010\uff08-]/;
const MARK_LEAD = /(?:^|\n)[ \t_]{2}/;
const END_LEAD = characterSet(" \\t=*#<>_~-");
/** Most lines begin with a letter that no role does, and most brackets hold something else. */
const NO_LABEL = characterSet("0-9.,;?bcefgjkmnqtvwxyzBCEFGJKMNQTVWXYZ");
const NO_BRACKET_LABEL = characterSet("\\n\\r!-'*-@\\\\-`gjkqrvwxyzGJKQRVWXYZ|}~");
const END_LETTER = characterSet("beBE");

function labels(text: string, signs: Signs): void {
  if (!LABEL_SIGN.test(text) && !MARK_LEAD.test(text)) return;
  const weak: Weak = { plain: 0, strong: 0 };
  const find = (pattern: RegExp, at: number): number => labelAt(pattern, text, at, weak, signs);
  for (let at = 0; at !== -1; at = nextLine(text, at)) {
    let first = at;
    while (text[first] === " " && first < at + 40) first += 1;
    const unit = text.charCodeAt(first);
    if (isIn(NO_LABEL, unit) && !(first > at + 1 && isIn(END_LETTER, unit))) continue;
    if (signs.overspends(6, at)) return;
    const end = find(LINE_LABEL, at);
    END_MARK.lastIndex = at;
    const mayEnd = isIn(END_LEAD, text.charCodeAt(at)) && isIn(END_LEAD, text.charCodeAt(at + 1));
    const mark = mayEnd ? END_MARK.exec(text) : null;
    if (mark !== null) {
      const span = { start: at + leadOf(mark[0]), end: END_MARK.lastIndex };
      if (signs.report({ rule: "end-mark", kind: "role_forging", weight: 4.5, ...span })) return;
    }
    if (end > at) at = end - 1;
  }
  for (const bracket of ["[", "(", "{"])
    for (let at = text.indexOf(bracket); at !== -1; at = text.indexOf(bracket, at)) {
      // Of several in a row only the last ones matter.
      let last = at + 1;
      while (text[last] === bracket) last += 1;
      const isLabel = !isIn(NO_BRACKET_LABEL, text.charCodeAt(last));
      if (signs.overspends(isLabel ? 4 : 1, at)) return;
      at = isLabel ? Math.max(find(BRACKET_LABEL, Math.max(at, last - 3)), last) : last;
    }
  // A search for a blank stops at every word.
  if (!text.includes("##")) return;
  for (let at = text.indexOf(" ##"); at !== -1 && !signs.overspends(15, at); at = text.indexOf(" ##", at))
    at = Math.max(find(HASH_LABEL, at + 1), at + 2);
}

function nextLine(text: string, from: number): number {
  const at = text.indexOf("\n", from);
  return at === -1 || at + 1 >= text.length ? -1 : at + 1;
}

function leadOf(found: string): number {
  return found.length - found.trimStart().length;
}

/** Returns where the label ends, or where it was looked for. */
function labelAt(pattern: RegExp, text: string, at: number, weak: Weak, signs: Signs): number {
  pattern.lastIndex = at;
  const found = pattern.exec(text)?.[0];
  if (found === undefined || signs.overspends(20, at)) return at;
  const end = at + found.length;
  // A heading is a line of its own; a label has something behind it.
  const isClosed =
    /[:\])}]$/.test(found) || /^[ \t]?[\])}>|*=#_~-]{0,8}[ \t]?[:：>\])）】]/.test(text.slice(end, end + 9));
  const isLoud = isClosed && (/[#<|=*]|:$/.test(found.trim().replace(/^\w+:$/, "")) || NOUN.test(found));
  const isStrong = isLoud || (isClosed && SYSTEM.test(found));
  const order = isStrong ? ORDER.exec(text.slice(end, end + 80))?.[0] : undefined;
  if (++weak[isStrong ? "strong" : "plain"] > MAX_WEAK && order === undefined) return end;
  const weight = isLoud ? 3.5 : isStrong ? 2.4 : isClosed ? 1.8 : 1.5;
  // A heading is not in brackets.
  const isBoxed = isStrong && /^[ \t>]*#{2,}[ \t]?[[({（【]/.test(found);
  const sign = isBoxed ? { weight: 4.4 } : { weight, weak: true as const };
  signs.report({ rule: "role-label", kind: "role_forging", ...sign, start: at + leadOf(found), end });
  const span = { start: end, end: end + (order?.length ?? 0) };
  if (order !== undefined)
    signs.report({ rule: "label-order", kind: "agent_directive", weight: 3, weak: true, ...span });
  return end;
}

const CALL_JSON =
  /"(?:tool_calls?|function_call|tool_use|tool_uses)"\s{0,4}:\s{0,4}[[{]|"type"\s{0,4}:\s{0,4}"(?:tool_use|tool_call|function_call)"|"(?:tool|tool_name|function|recipient_name|action|name)"\s{0,4}:\s{0,4}"[\w.:-]{1,80}"\s{0,4},\s{0,4}"(?:arguments|parameters|args|input|tool_input|action_input|kwargs|params)"\s{0,4}:\s{0,4}["{]/g;
const CALL_WORDS = /(?:^|[\s.>*])Action:\s{0,3}[\w.:-]{2,60}\s{0,3}\n\s{0,6}Action Input:/gi;
/** A tool whose call does harm: the difference between a log of calls and a call that wants to happen. */
const DANGEROUS =
  /(?:send|delete|remove|exec|shell|bash|terminal|transfer|wire|pay|upload|mail|drop|exfil|forward|publish|grant|admin|secret|password|credential|get_env|wallet|invite|disable)|\b(?:rm -rf|curl |wget )/i;

/** Whether a text may hold a forged call that does harm: cheaper than reading it. */
export function mayForgeCall(text: string): boolean {
  return text.includes('":') && text.search(CALL_JSON) !== -1 && DANGEROUS.test(text);
}

function toolCalls(text: string, signs: Signs): void {
  if (text.includes('":')) {
    const isDocument = /^\s{0,20}[[{]/.test(text);
    each(CALL_JSON, text, signs, (found) => {
      const span = spanOf(found);
      const named = text.slice(span.start, span.end + 100).match(/"[\w.:-]{3,60}"/g) ?? [];
      const isDangerous = DANGEROUS.test(named.join(" "));
      // A document that is JSON may be about calls; between words a call wants to happen.
      const weight = (isDangerous ? 4 : 2) + (isDocument ? 0 : 1);
      const weak = isDocument || !isDangerous ? true : undefined;
      return signs.report({ rule: "tool-call-json", kind: "tool_call_forging", weight, weak, ...span });
    });
  }
  if (text.includes("put:"))
    each(CALL_WORDS, text, signs, (found) =>
      signs.report({ rule: "tool-call-words", kind: "tool_call_forging", weight: 5, ...spanOf(found) }),
    );
}

// Addresses that carry data out when they are fetched.

/** Up to the two slashes: what kind of link it is. */
const BEFORE_ADDRESS =
  /(!?\[[^\][\n]{0,200}\]\(\s{0,3}<?|<img\b[^<>]{0,300}?\bsrc\s{0,3}=\s{0,3}["']?|url\(\s{0,3}["']?|\n\s{0,3}\[[^\]\n]{1,60}\]:\s{0,3})?(?:https?:)?$/i;
/** The sign that ends what can be before an address, seen cheaply. */
const MAY_LEAD = /[(<"'=:]\s{0,3}$/;
const PRIVATE =
  "secrets?|passwords?|passwd|credentials?|conversation|chat[_ -]?(?:history|log|context)|history|context|system[_ -]?prompt|prompt|cookies?|user[_ -]?(?:data|info|input|email|messages?|query|secrets?|prompt|details|content|password)|private\\w{0,12}|sensitive\\w{0,12}|memory|memories|file[_ -]?contents?|env(?:ironment)?(?:[_ -]?var(?:iable)?s?)?|credit[_ -]?card|ssn|last[_ -]?message|previous[_ -]?messages?|transcript|leak|exfil\\w{0,12}|stolen|inbox|emails|summary|query";
/** A blank for the reader to fill in, named after something private. */
const BLANK = new RegExp(
  `(?:\\$?\\{{1,2}|\\[{1,2}|<|%7b|%5b|\\$\\(|%3c)\\s{0,3}(?:(?:the|insert|your|user'?s?|full|all|url|b64|base64|encoded?|put|current|entire|btoa\\(|encodeuricomponent\\()[_ -]{0,2}){0,4}(?:${PRIVATE})(?![a-z])`,
  "i",
);
/** Capitals that stand for a value. */
const CAPITALS =
  /[=/](?:[A-Z0-9]{1,12}_){0,4}(?:SECRETS?|PASSWORD|CONVERSATION|CHAT|HISTORY|CONTEXT|PROMPT|COOKIES?|PRIVATE|SUMMARY|CREDENTIALS?|MESSAGES|EMAILS|USER_DATA|STOLEN)(?:_(?:HERE|DATA|BASE64|ENCODED|B64|HISTORY|CONTENTS?|VALUE))*(?![A-Za-z0-9])/;
const CARRIER =
  /[?&#;](?:q|d|c|s|x|p|m|data|info|payload|exfil|leak|secrets?|token|key|api_?key|conversation|chat|history|context|prompt|msg|message|text|contents?|body|memory|session|cookies?|password|pwd|email|user_?data|stolen|dump|log|out|output|result|b64|base64|env|creds?|credentials|ssn|card|note|summary)=([^&#\s)"'>]{1,400})/i;
const SUSPECT_HOST =
  /^\/\/(?:[^/?#@]{0,80}[.@-])?(?:evil|attacker|exfil|malicious|hacker|steal|leak|webhook\.site|requestbin|pipedream|ngrok|burpcollaborator|oast|interact\.sh|beeceptor|collect-|\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3})/i;
const ADDRESS_END = /[\s)"'>`\]]/;
const MAX_ADDRESS = 600;

function addresses(text: string, signs: Signs): void {
  for (let at = text.indexOf("//"); at !== -1; at = text.indexOf("//", at + 2)) {
    if (!/[\w.[{<$%-]/.test(text[at + 2] ?? "")) continue;
    const window = text.slice(at, at + MAX_ADDRESS);
    const stop = window.search(ADDRESS_END);
    // A blank may hold spaces: `{the conversation}`.
    const address =
      stop === -1 ? window : window.slice(0, /[{[<]\s?\w{0,20}$/.test(window.slice(0, stop)) ? stop + 60 : stop);
    if (signs.overspends(20 + address.length / 8, at)) return;
    const isSuspect = SUSPECT_HOST.test(address);
    if (!isSuspect && !/[?#=[{<%]/.test(address)) continue;
    if (signs.overspends(20 + address.length / 2, at)) return;
    let weight = BLANK.test(address)
      ? address.includes("?")
        ? 5
        : 3.5
      : CAPITALS.test(address)
        ? 4.5
        : carried(address);
    if (/exfil|steal|[/.]leak/i.test(address)) weight += 3;
    if (weight > 0 && isSuspect) weight += 2;
    else if (isSuspect) weight = 2;
    if (weight < 2) continue;
    const before = MAY_LEAD.test(text.slice(Math.max(0, at - 12), at).replace(/https?:$/i, ""))
      ? (BEFORE_ADDRESS.exec(text.slice(Math.max(0, at - 320), at))?.[1] ?? "")
      : "";
    const isImage = before !== "" && !before.startsWith("[");
    const span = { start: at - before.length, end: at + address.length };
    const kind = isImage ? "exfiltration_image" : "exfiltration_link";
    const weak = weight < 4 ? true : undefined;
    if (signs.report({ rule: "address", kind, weight: isImage ? weight + 1.5 : weight, weak, ...span })) return;
  }
}

function carried(address: string): number {
  const value = CARRIER.exec(address)?.[1];
  if (value === undefined) return 0;
  if (/(?:password|secret|api_?key|token|sk-|ssn|credit)[:=%]/i.test(value)) return 4;
  // Signatures and cache keys are long too.
  if (/^[a-z0-9+/_%=-]{24,}$/i.test(value) && !/^[0-9a-f]{32,64}$/i.test(value))
    return isReadableBase64(value) ? 4 : 2.5;
  return value.split(/\+|%20|_|-/).filter((word) => /^[a-z]{2,20}$/i.test(word)).length >= 6 ? 2 : 0;
}

function isReadableBase64(value: string): boolean {
  const plain = value.replaceAll(/%([0-9a-f]{2})/gi, (_, digits) => String.fromCharCode(Number.parseInt(digits, 16)));
  const bytes = Buffer.from(plain, "base64");
  return bytes.length >= 12 && isUtf8(bytes) && /^[\t\n\r -~]+$/.test(bytes.toString("latin1"));
}

// Parts of a page that a person does not see.

const HIDING_TAG = /<([a-z][a-z0-9]{0,15})\b([^<>]{1,300})>/iy;
const HIDING_STYLE =
  /display\s{0,3}:\s{0,3}none|visibility\s{0,3}:\s{0,3}hidden|opacity\s{0,3}:\s{0,3}0(?![.\d])|font-size\s{0,3}:\s{0,3}(?:0|1px)(?![.\d])|(?:left|top|text-indent)\s{0,3}:\s{0,3}-\d{3,6}|(?:height|width)\s{0,3}:\s{0,3}0(?![.\d])|(?<![-\w])color\s{0,3}:\s{0,3}(?:white|transparent|#fff(?:fff)?\b|rgba?\(255, ?255, ?255)/i;
const HIDING_ATTRIBUTE = /(?:^|\s)(?:hidden(?=$|\s|=)|aria-hidden="?true)/i;
const MAX_HIDDEN = 4_000;

/** Comments and invisible elements, in the order of their starts; they do not overlap. */
export function hiddenSpans(text: string): Span[] {
  const spans: Span[] = [];
  let from = 0;
  for (let at = text.indexOf("<"); at !== -1; at = text.indexOf("<", Math.max(at + 1, from))) {
    let close: string | undefined;
    let body = at;
    if (text.startsWith("<!--", at)) close = "-->";
    else {
      if (!/[a-z]/i.test(text[at + 1] ?? "")) continue;
      HIDING_TAG.lastIndex = at;
      const [tag = "", name = "", attributes = ""] = HIDING_TAG.exec(text) ?? [];
      const isHiding =
        (attributes.includes("style") && HIDING_STYLE.test(attributes)) || HIDING_ATTRIBUTE.test(attributes);
      if (isHiding && !/^(?:input|svg|path)$/i.test(name)) close = `</${name}`;
      body = at + tag.length;
    }
    if (close === undefined) continue;
    const closing = text.slice(body, body + MAX_HIDDEN).indexOf(close);
    from = closing === -1 ? Math.min(text.length, body + MAX_HIDDEN) : body + closing + close.length;
    spans.push({ start: at, end: from });
  }
  return spans;
}
