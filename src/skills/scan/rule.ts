/** Rules read one file of a skill and return signs; a sign becomes a finding in the light of its context. */
import { excerptOf } from "../../base/visible-text.ts";
import type { SkillFinding, SkillSeverity } from "../../model/skill.ts";
import { LINES_PER_SLICE, type ScannedLine, type ScannedText } from "./scanned-text.ts";
import { defenceLevel, type Subject } from "./subject.ts";

export interface Rule {
  /** Matches every text in which the rule can find something, so that most texts are not read further. */
  readonly hint: RegExp;
  /** Must be linear in the text and must not throw. Yields `undefined` where the scan may pause. */
  find(text: ScannedText, subject: Subject): Iterable<Sign | undefined>;
}

/** The place of a line that a rule is looking at. */
interface RuleContext {
  readonly text: ScannedText;
  readonly index: number;
  readonly subject: Subject;
}

/** A rule that finds at most one sign in each line. */
export function lineRule(hint: RegExp, check: (line: ScannedLine, context: RuleContext) => Sign | undefined): Rule {
  return {
    hint,
    *find(text, subject) {
      for (const [index, line] of text.lines.entries()) {
        if (index % LINES_PER_SLICE === 0) yield undefined;
        const sign = check(line, { text, index, subject });
        if (sign !== undefined) yield sign;
      }
    },
  };
}

/** The signs of a rule without pauses: for texts that are known to be short. */
export function* signsOf(rule: Rule, text: ScannedText, subject: Subject): Generator<Sign> {
  for (const sign of findingSigns(rule, text, subject)) if (sign !== undefined) yield sign;
}

export function findingSigns({ hint, find }: Rule, text: ScannedText, subject: Subject): Iterable<Sign | undefined> {
  return hint.test(text.all) ? find(text, subject) : [];
}

export interface Sign {
  readonly code: SignCode;
  readonly severity: SkillSeverity;
  /** The sign and why it matters. */
  readonly message: string;
  readonly line: ScannedLine;
  /** The part of a long line to show. */
  readonly near?: string;
  /** It names a real address; an example does not. */
  readonly concrete?: boolean;
}

export const SIGN_CODES = [
  "piped_download",
  "download_and_run",
  "encoded_command",
  "raw_address",
  "locked_archive",
  "credential_theft",
  "fake_prerequisite",
  "always_on",
  "undeclared_env",
  "unexpected_executable",
  "hidden_code",
  "persistence",
  "reverse_shell",
  "destructive_command",
  "crypto_miner",
  "remote_instructions",
  "weakened_security",
  "obfuscated_code",
  "hidden_unicode",
  "hidden_text",
  "prompt_injection",
  "unscanned",
] as const;

export type SignCode = (typeof SIGN_CODES)[number];

const SEVERITY_ORDER: readonly SkillSeverity[] = ["note", "warn", "refuse"];

export function isWorse(severity: SkillSeverity, than: SkillSeverity): boolean {
  return SEVERITY_ORDER.indexOf(severity) > SEVERITY_ORDER.indexOf(than);
}

// From signs to findings: the context of a sign can lower its severity.

/** The guard weighs talk about attacks by itself. */
const WEIGHED_CODES = new Set<SignCode>(["prompt_injection", "hidden_unicode", "hidden_text", "undeclared_env"]);

export function findingOf(sign: Sign, text: ScannedText, subject: Subject): SkillFinding {
  const { code, message, line } = sign;
  return {
    code,
    severity: inContext(sign, text, subject),
    message,
    file: text.path,
    line: line.number,
    excerpt: excerptIn(line, sign.near),
  };
}

function inContext(sign: Sign, text: ScannedText, subject: Subject): SkillSeverity {
  const { severity, code, line, concrete } = sign;
  if (severity === "note" || WEIGHED_CODES.has(code)) return severity;
  switch (defenceLevel(text, line, subject.security)) {
    case 3:
      return "note";
    case 2:
      return severity === "refuse" ? "warn" : "note";
    case 1:
      // A guide for testers shows what a tester types, with gaps or private numbers for the place.
      return severity === "refuse" && concrete !== true ? "warn" : severity;
    default:
      return severity;
  }
}

export const MAX_EXCERPT_LENGTH = 160;

function excerptIn({ raw }: ScannedLine, near: string | undefined): string {
  const line = raw.trim();
  if (line.length <= MAX_EXCERPT_LENGTH) return excerptOf(line, 0, line.length);
  const at = near === undefined ? 0 : Math.max(0, line.toLowerCase().indexOf(near.toLowerCase()) - 20);
  return excerptOf(line, at, Math.min(line.length, at + MAX_EXCERPT_LENGTH));
}
