/** What a server says while it works reaches agents as well, so it passes the guard like a result. */
import { detect } from "../guard/detect/detect.ts";
import { neutralise } from "../guard/wrap/neutralise.ts";
import { redact } from "../guard/wrap/redact.ts";
import type { GuardRules } from "../model/config.ts";
import { isAtLeast } from "../model/finding.ts";
import type { Progress } from "../model/protocol.ts";
import type { CallOptions, CallPath } from "./call-path.ts";
import type { Target } from "./target.ts";

/** Progress is a line, not a text. */
const LONGEST = 300;

/** The progress report as this audience may see it. Only its numbers are left where the guard withholds its words. */
export function guardedProgress(
  path: CallPath,
  { capability }: Target,
  audience: CallOptions["audience"],
  report: Progress,
): Progress {
  const { source: server } = capability.origin;
  const masked = path.mask(report);
  if (audience !== "agent" || path.isTrusted(server)) return masked;
  const { progress, total, message } = masked;
  const said = typeof message === "string" ? allowedWords(message, path.guard.onSuspicious) : "";
  // A short prefix marks it: a boundary around every step would be longer than what it is about.
  const text = path.guard.wrap === "none" ? said : `[untrusted, from ${path.calledName(server)}] ${neutralise(said)}`;
  return {
    progress,
    ...(typeof total === "number" ? { total } : {}),
    ...(said === "" ? {} : { message: text }),
  };
}

function allowedWords(message: string, onSuspicious: GuardRules["onSuspicious"]): string {
  const line = message.slice(0, LONGEST).toWellFormed();
  if (onSuspicious === "ignore") return oneLine(line);
  const serious = detect(line).filter(({ severity }) => isAtLeast(severity, "medium"));
  if (serious.length === 0 || onSuspicious === "warn") return oneLine(line);
  return onSuspicious === "block" ? "" : oneLine(redact(line, serious));
}

function oneLine(text: string): string {
  return text.replaceAll(/[\s\p{Cc}\p{Cf}]+/gu, " ").trim();
}
