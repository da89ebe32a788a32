/** Steps by which a skill's author proposes to fetch a program. Nothing runs them here, but other clients do. */
import { excerptOf } from "../../guard/detect/show-hidden.ts";
import type { SkillFinding, SkillSeverity } from "../../model/skill.ts";
import { type Address, addressOf, isShady } from "./addresses.ts";
import { nameOf } from "./source-severity.ts";
import type { Subject } from "./subject.ts";

const MOST_STEPS = 50;
const EXCERPT = 160;

export function installStepFindings(subject: Subject, document: string): SkillFinding[] {
  const findings: SkillFinding[] = [];
  for (const { kind, step } of subject.skill.install.slice(0, MOST_STEPS)) {
    const { url } = step;
    if (kind.toLowerCase() !== "download" || typeof url !== "string") continue;
    const address = addressOf(url.trim().toLowerCase());
    const severity = address === undefined ? "note" : severityOf(address, subject);
    if (severity === undefined) continue;
    findings.push({
      code: "download_and_run",
      severity,
      message: `An install step downloads a program from ${address === undefined ? "an address that cannot be read" : nameOf(address)}.`,
      file: "SKILL.md",
      line: lineOf(document, url),
      excerpt: excerptOf(url, 0, Math.min(url.length, EXCERPT)) || kind,
    });
  }
  return findings;
}

function severityOf(address: Address, subject: Subject): SkillSeverity | undefined {
  if (isShady(address) || address.kind === "paste") return "refuse";
  switch (address.kind) {
    case "installer":
    case "local":
    case "private":
    case "example":
      return undefined;
    case "forge":
      return subject.isOwn(address) ? undefined : "note";
    default:
      return subject.isOwn(address) && !address.plainHttp ? "note" : "warn";
  }
}

function lineOf(document: string, text: string): number {
  const at = Math.max(0, document.indexOf(text));
  let line = 1;
  for (let next = document.indexOf("\n"); next !== -1 && next < at; next = document.indexOf("\n", next + 1)) line += 1;
  return line;
}
