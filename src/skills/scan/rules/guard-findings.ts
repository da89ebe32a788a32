/** The guard's detectors for the texts of a skill. Instructing an agent is the purpose of a skill and not a finding. */
import type { Finding, FindingCode } from "../../../model/finding.ts";
import type { SkillSeverity } from "../../../model/skill.ts";
import { lineAt, LineNumbers, type ScannedLine, type ScannedText } from "../scanned-text.ts";
import type { Sign, SignCode } from "../rule.ts";
import { defenceLevel, type Subject } from "../subject.ts";

interface Meaning {
  readonly code: SignCode;
  readonly message: string;
}

const INJECTION = "prompt_injection";
const UNICODE = "hidden_unicode";

/** Directives, calls and links are missing here: instructions consist of them. */
const MEANINGS: Readonly<Partial<Record<FindingCode, Meaning>>> = {
  instruction_override: {
    code: INJECTION,
    message: "The text tells an agent to ignore its other instructions.",
  },
  task_switch: { code: INJECTION, message: "The text gives an agent another role, mode or task." },
  prompt_theft: { code: INJECTION, message: "The text asks an agent for its instructions." },
  role_forging: { code: INJECTION, message: "The text pretends to be a message of the system or of the user." },
  concealment: { code: INJECTION, message: "The text tells an agent to keep something from its user." },
  exfiltration_request: { code: INJECTION, message: "The text tells an agent to send out what it knows." },
  credential_request: { code: INJECTION, message: "The text tells an agent to fetch or hand over credentials." },
  exfiltration_image: {
    code: INJECTION,
    message: "The address of an image would send data out when the image is shown.",
  },
  hidden_text: { code: "hidden_text", message: "There is text that an agent sees and a reader does not." },
  bidi_text: {
    code: UNICODE,
    message: "Characters change the direction of the text, so that it reads differently from what it says.",
  },
  tag_characters: { code: UNICODE, message: "Invisible characters spell a text that only a machine reads." },
  terminal_escape: { code: UNICODE, message: "Control characters change what a terminal shows." },
  encoded_payload: { code: INJECTION, message: "Encoded text says something that the text itself does not." },
};

/** Worth a warning even if only probable: most have no honest use. */
const ODD_ANYWHERE = new Set<FindingCode>([
  "hidden_text",
  "bidi_text",
  "tag_characters",
  "terminal_escape",
  "encoded_payload",
]);
/** One of each close together: something is taken and concealed. */
const TAKING = new Set<FindingCode>(["exfiltration_request", "credential_request"]);
const CONCEALING = new Set<FindingCode>(["concealment"]);
const NEAR = 1_500;

export function* guardSigns(text: ScannedText, findings: readonly Finding[], subject: Subject): Generator<Sign> {
  const numbers = findings.length === 0 ? undefined : new LineNumbers(text.raw);
  for (const finding of findings) {
    const meaning = MEANINGS[finding.code];
    const severity = severityOf(text, finding, findings);
    const line = lineAt(text, numbers?.of(finding.start) ?? 1);
    if (meaning === undefined || severity === undefined || line === undefined) continue;
    const isExample = meaning.code === INJECTION && severity === "refuse" && isShown(text, finding, line, subject);
    yield {
      ...meaning,
      severity: isExample ? "warn" : severity,
      line,
      near: text.raw.slice(finding.start, Math.min(finding.end, finding.start + 160)),
    };
  }
}

/** Whether the text shows an attack to warn of it, and not to make one. What a reader does not see shows nothing. */
function isShown(text: ScannedText, { start, end }: Finding, line: ScannedLine, { security }: Subject): boolean {
  if (line.hidden) return false;
  if (isReported(text.raw, start, end)) return true;
  const isLiteral =
    line.fenced || /^\s{0,20}\|/.test(line.raw) || isQuoted(text.raw, start, end) || QUOTED_LIST.test(line.raw);
  return isLiteral && defenceLevel(text, line, security) > 0;
}

const CONTENT_SAYS =
  /\b(?:if|when|whenever)\b.{0,80}\b(?:pages?|contents?|documents?|e-?mails?|messages?|files?|web ?sites?|results?|texts?|comments?|issues?|outputs?|inputs?)\b.{0,40}\b(?:tells?|says?|asks?|instructs?|claims?|contains?|tr(?:y|ies)|attempts?)\b/i;
const NOT_OBEYED =
  /\b(?:do not|don'?t|never|must not)\s{1,3}(?:comply|follow|obey|act|execute|trust|do (?:it|so))\b|\b(?:treat|regard) (?:it|them|this|that|these|those) as\b|\b(?:refuse|decline)\b/i;
/** As much of the sentence as is looked at, before and after. */
const SENTENCE = 240;

/** "If a page tells you to …, do not comply." */
function isReported(raw: string, start: number, end: number): boolean {
  const before = raw.slice(Math.max(0, start - SENTENCE), start);
  const after = raw.slice(end, end + SENTENCE);
  const own = before.slice(Math.max(before.lastIndexOf("\n"), before.lastIndexOf(". ")) + 1);
  const [rest = ""] = after.split(/\n|\. /, 1);
  return CONTENT_SAYS.test(own) && NOT_OBEYED.test(rest);
}

const QUOTES = /["'`\u201C\u201D\u2018\u2019]/;

/** Several phrases between quotation marks on one line: examples of something. */
const QUOTED_LIST =
  /["\u201C`][^"\u201C\u201D`]{3,80}["\u201D`],\s{0,3}(?:or |and )?["\u201C`][^"\u201C\u201D`]{3,80}["\u201D`]/;

function isQuoted(raw: string, start: number, end: number): boolean {
  return QUOTES.test(raw.slice(Math.max(0, start - 2), start + 1)) && QUOTES.test(raw.slice(end - 1, end + 40));
}

function severityOf({ kind }: ScannedText, finding: Finding, all: readonly Finding[]): SkillSeverity | undefined {
  const { code, severity, rules } = finding;
  if (severity === "low") return undefined;
  if (severity === "high") {
    // Literals of a program and files of samples address no agent.
    if (code === "tag_characters" || (kind === "instructions" && isHostileAlone(finding, all))) return "refuse";
    return ODD_ANYWHERE.has(code) ? "warn" : "note";
  }
  if (kind !== "instructions") return ODD_ANYWHERE.has(code) ? "warn" : undefined;
  // What is behind more words of attacks than any honest text has is not read.
  if (rules.includes("unreadable")) return "refuse";
  if (ODD_ANYWHERE.has(code)) return "warn";
  if (
    (code === "concealment" && isNear(finding, all, TAKING)) ||
    (TAKING.has(code) && isNear(finding, all, CONCEALING))
  )
    return "refuse";
  // Honest instructions are sometimes probable matches: "reply with only the label".
  return CONCEALING.has(code) || code === "exfiltration_request" ? "note" : undefined;
}

/** Honest instructions are about keys, tools and roles, too; they do not tell an agent to drop what it was told. */
const HOSTILE_ALONE = new Set<FindingCode>(["instruction_override", ...ODD_ANYWHERE]);

/** "Skip what the user has answered", "end the conversation and return": they are about the task at hand, which is a skill's to shape. */
const ABOUT_TASK = new Set(["drop-task", "drop-this-and", "stop-task", "stop-task-instead", "drop-things-earlier"]);

function isHostileAlone({ code, start, rules }: Finding, all: readonly Finding[]): boolean {
  if (HOSTILE_ALONE.has(code)) return !rules.every((rule) => ABOUT_TASK.has(rule));
  if (TAKING.has(code)) return isNear({ start }, all, CONCEALING);
  return code === "concealment" ? isNear({ start }, all, TAKING) : isNear({ start }, all, HOSTILE_ALONE);
}

function isNear({ start }: Pick<Finding, "start">, all: readonly Finding[], codes: ReadonlySet<FindingCode>): boolean {
  return all.some((other) => other.severity !== "low" && codes.has(other.code) && Math.abs(other.start - start) < NEAR);
}
