import type { Severity } from "../../model/finding.ts";
import { type Detector, SuspicionList } from "./detector.ts";
import { eachMatch } from "./matches.ts";

/* oxlint-disable no-control-regex -- terminal escapes are made of control characters */
const INTRODUCERS = ["\u001b", "\u0090", "\u009b", "\u009d", "\b\b\b\b"] as const;
const INTRODUCER = "(?:\\u001b\\[|\\u009b)";
const SYSTEM = "(?:\\u001b\\]|\\u009d)";
const END = "(?:\\u0007|\\u001b\\\\|\\u009c)";

const WORDS_END = /\p{L}{2,20} \p{L}{2,20}[^\n\u001b]{0,40}$/u;
const WORDS_START = /^[^\n\u001b]{0,10}\p{L}{2,20} \p{L}{2}/u;

interface Form {
  readonly pattern: RegExp;
  severity(found: RegExpExecArray): Severity | undefined;
}

/** Colours, cursor moves and titles are what programs print all day; the forms here hide, write or answer. */
const FORMS: readonly Form[] = [
  // Concealed text, up to the next change of attributes.
  {
    pattern: new RegExp(`${INTRODUCER}(?:\\d{1,3};){0,6}8(?:;\\d{1,3}){0,6}m([^\\u001b\\u009b]{0,400})`, "g"),
    severity: (found) => (isColourNumber(found[0]) ? undefined : /[\p{L}]{3}/u.test(found[1] ?? "") ? "high" : "low"),
  },
  // Letters in the colour of their background.
  {
    pattern: new RegExp(
      `${INTRODUCER}(?:\\d;)?(?:(3|9)([0-7]);(?:\\d;)?(4|10)\\2|(4|10)([0-7]);(?:\\d;)?(3|9)\\5)m([^\\u001b\\u009b]{3,400})`,
      "g",
    ),
    severity: () => "medium",
  },
  // The clipboard.
  { pattern: new RegExp(`${SYSTEM}52;[a-z0-7]{0,8};`, "g"), severity: () => "high" },
  // A link that shows one address and opens another.
  {
    pattern: new RegExp(
      `${SYSTEM}8;[^;\\u0007\\u001b]{0,80};([^\\u0007\\u001b]{1,600})${END}([^\\u001b\\u009d]{1,200})`,
      "g",
    ),
    severity: (found) => (showsOtherHost(found[1] ?? "", found[2] ?? "") ? "high" : undefined),
  },
  // Files, notifications and profile changes by terminal-specific commands; strings for the terminal's own programs.
  { pattern: new RegExp(`${SYSTEM}(?:1337|777|50|5113);`, "g"), severity: () => "medium" },
  { pattern: /\u001b[PX^_][^\u001b]{3,400}/g, severity: () => "medium" },
  // Reports that the terminal would type back: title, status strings.
  { pattern: new RegExp(`${INTRODUCER}(?:2[01]t|>q|\\?\\d{1,3}\\$p)`, "g"), severity: () => "medium" },
  // What was printed is wiped or written over, and other words stand in its place.
  {
    pattern: new RegExp(`(?:${INTRODUCER}(?:2J|3J|H|1;1H)){2,4}`, "g"),
    severity: (found) => (standsInText(found) ? "medium" : undefined),
  },
  {
    pattern: /\u0008{4,}/g,
    severity: (found) => (found[0].length >= 12 || standsInText(found) ? "medium" : undefined),
  },
];
/* oxlint-enable no-control-regex */

/** Control sequences with which a text shows a person something other than what a model reads, or makes a terminal act. */
export const terminalEscape: Detector = {
  name: "terminal escape",
  mayFind: ({ original, normal }) => normal.folded && INTRODUCERS.some((sign) => original.includes(sign)),
  *find({ original }) {
    const suspicions = new SuspicionList();
    for (const form of FORMS) {
      yield* eachMatch(form.pattern, original, (found, start) => {
        suspicions.add("terminal_escape", form.severity(found), { start, end: start + found[0].length });
      });
    }
    return suspicions.all();
  },
};

/** Words stand before and after it on the same line. */
function standsInText(found: RegExpExecArray): boolean {
  const { input: text, index: at } = found;
  const after = at + found[0].length;
  return WORDS_END.test(text.slice(Math.max(0, at - 80), at)) && WORDS_START.test(text.slice(after, after + 80));
}

/** `38;5;8m` chooses colour 8; it conceals nothing. */
function isColourNumber(sequence: string): boolean {
  return /[345]8;5;(?:\d{1,3};)*8(?:;|m)|[345]8;2;/.test(sequence);
}

function showsOtherHost(url: string, shown: string): boolean {
  const real = hostOf(url);
  const claimed = /(?:https?:\/\/)?((?:[a-z0-9-]{1,63}\.){1,5}[a-z]{2,24})(?:[/:\s]|$)/i
    .exec(shown)?.[1]
    ?.toLowerCase();
  if (real === undefined || claimed === undefined) return false;
  return !/^https?:/i.test(shown.trim()) && !shown.includes("/")
    ? false
    : real !== claimed && !real.endsWith(`.${claimed}`);
}

function hostOf(url: string): string | undefined {
  return /^[a-z]{2,10}:\/\/(?:[^/@]{0,200}@)?([^/:?#]{1,253})/i.exec(url)?.[1]?.toLowerCase();
}
