/** The kinds of suspicious content that the guard finds in untrusted text. */
export const FINDING_CODES = [
  "instruction_override",
  "agent_directive",
  "task_switch",
  "authority_claim",
  "prompt_theft",
  "tool_directive",
  "concealment",
  "role_forging",
  "tool_call_forging",
  "exfiltration_request",
  "exfiltration_link",
  "exfiltration_image",
  "credential_request",
  "hidden_text",
  "bidi_text",
  "tag_characters",
  "terminal_escape",
  "encoded_payload",
  "detector_match",
] as const;

export type FindingCode = (typeof FINDING_CODES)[number];

/** high: act on it. medium: probably hostile. low: worth a note, common in honest texts about the subject. */
export const SEVERITIES = ["low", "medium", "high"] as const;

export type Severity = (typeof SEVERITIES)[number];

/** Where a server put the text. */
export const PLACES = [
  "definition",
  "instructions",
  "result",
  "error",
  "resource",
  "prompt",
  "skill",
  "progress",
  "log",
  "elicitation",
  "sampling",
] as const;

export type Place = (typeof PLACES)[number];

export interface Finding {
  readonly code: FindingCode;
  readonly severity: Severity;
  /** First UTF-16 unit of the span in the original text. */
  readonly start: number;
  /** One past the last UTF-16 unit of the span. */
  readonly end: number;
  /** Short and printable: hidden characters are written as `\u{…}`. */
  readonly excerpt: string;
  /** Of 10, for the passage that it belongs to. */
  readonly score: number;
  /** The rules that matched. */
  readonly rules: readonly string[];
  readonly place: Place;
}

export function isAtLeast(severity: Severity, least: Severity): boolean {
  return SEVERITIES.indexOf(severity) >= SEVERITIES.indexOf(least);
}
