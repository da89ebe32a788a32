/** Records of the audit log in the words of the page. */
import type { AuditEntry } from "../../../../src/contract/activity-schemas.ts";
import { audit } from "../../messages/audit.ts";
import { t } from "../../messages/messages.ts";
import { clockText, dayText } from "../../text.ts";

type Tone = "neutral" | "accent" | "ok" | "warn" | "bad" | "info";

export function titleOf(entry: AuditEntry): string {
  return entry.event ?? entry.name ?? entry.type;
}

/** The subject of an event: a server, a tool, a skill, a session. */
export function aboutOf({ event, name, origin }: AuditEntry): string {
  return event === undefined ? "" : name || origin?.name || "";
}

/** The word that says how it went, and its colour. */
export function verdictOf(entry: AuditEntry): { readonly word: string; readonly tone: Tone } {
  switch (entry.type) {
    case "start":
      return { word: t(audit.noEndYet), tone: "info" };
    case "event":
      return { word: t(audit.event), tone: "neutral" };
    case "decision": {
      const answer = entry["answer"];
      if (answer === "withdrawn") return { word: t(audit.withdrawn), tone: "neutral" };
      if (typeof answer === "string")
        return { word: t(audit.answer, { answer }), tone: answer === "no" || answer === "timeout" ? "bad" : "ok" };
      return { word: entry.decision ?? t(audit.decision), tone: decisionTone(entry.decision) };
    }
    case "call":
      if (entry.outcome === "ok") return { word: "ok", tone: "ok" };
      if (entry.outcome === "cancelled") return { word: "cancelled", tone: "neutral" };
      return { word: entry.outcome ?? t(audit.unknown), tone: "bad" };
  }
}

function decisionTone(decision: string | undefined): Tone {
  if (decision === "deny") return "bad";
  return decision === "ask" ? "warn" : "ok";
}

export function whoOf({ user, role, client }: AuditEntry): string {
  const name = user ?? client?.name;
  const part = role ?? undefined;
  if (name === undefined) return part === undefined ? "" : t(audit.asRole, { role: part });
  return part === undefined ? name : t(audit.userAsRole, { user: name, role: part });
}

/** The time of day, with the day in front if it is another than today. */
export function stampText(time: string, now: number): string {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return time;
  const clock = clockText(date);
  if (date.toDateString() === new Date(now).toDateString()) return clock;
  return `${dayText(date)} ${clock}`;
}

/** Codes of what the guard found in the result. */
export function findingsOf(entry: AuditEntry): readonly string[] {
  const findings = entry["findings"];
  if (!Array.isArray(findings)) return [];
  return findings.flatMap((finding: unknown) => {
    const code = typeof finding === "object" && finding !== null && "code" in finding ? finding.code : finding;
    return typeof code === "string" ? [code] : [];
  });
}

/** Where a rule stands and what it says, if one decided. */
export function ruleText(entry: AuditEntry): string | undefined {
  const rule = entry["rule"];
  if (typeof rule !== "object" || rule === null) return undefined;
  // An object, of which nothing more is known.
  const { level, list, pattern, where } = rule as Readonly<Record<string, unknown>>;
  const parts = [list, typeof pattern === "string" ? JSON.stringify(pattern) : undefined, level, where];
  return parts.filter((part) => typeof part === "string").join(" · ");
}
