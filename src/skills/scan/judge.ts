/** From signs to findings: what stands around a sign makes it better, what stands beside it makes it worse. */
import { excerptOf } from "../../guard/detect/show-hidden.ts";
import type { SkillFinding, SkillSeverity } from "../../model/skill.ts";
import { defenceLevel } from "./defence.ts";
import type { ScannedLine, ScannedText } from "./scanned-text.ts";
import type { Sign, SignCode } from "./sign.ts";
import type { Subject } from "./subject.ts";

/** The guard weighs talk about attacks by itself. */
const WEIGHED = new Set<SignCode>(["prompt_injection", "hidden_unicode", "hidden_text", "undeclared_env"]);

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
  if (severity === "note" || WEIGHED.has(code)) return severity;
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

const EXCERPT = 160;

function excerptIn({ raw }: ScannedLine, near: string | undefined): string {
  const line = raw.trim();
  if (line.length <= EXCERPT) return excerptOf(line, 0, line.length);
  const at = near === undefined ? 0 : Math.max(0, line.toLowerCase().indexOf(near.toLowerCase()) - 20);
  return excerptOf(line, at, Math.min(line.length, at + EXCERPT));
}
