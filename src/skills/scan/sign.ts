/** What a rule found, before the surroundings of the place are taken into account. */
import type { SkillSeverity } from "../../model/skill.ts";
import type { ScannedLine } from "./scanned-text.ts";

export interface Sign {
  readonly code: SignCode;
  readonly severity: SkillSeverity;
  /** What it is and why it matters. */
  readonly message: string;
  readonly line: ScannedLine;
  /** Words of the line to show; the whole line without them. */
  readonly near?: string;
  /** It names a place that could really be reached; an example names none. */
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

const ORDER: readonly SkillSeverity[] = ["note", "warn", "refuse"];

export function isWorse(severity: SkillSeverity, than: SkillSeverity): boolean {
  return ORDER.indexOf(severity) > ORDER.indexOf(than);
}
