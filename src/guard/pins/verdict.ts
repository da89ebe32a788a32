/** What the pins say of one tool, for policy. */
import type { Rule } from "../../model/decision.ts";

/** off: not looked at. warn: told of. ask: somebody is asked at each call. block: invisible until approved. */
export type PinMode = "off" | "warn" | "ask" | "block";

export type PinVerdict =
  | { readonly verdict: "allow" }
  | { readonly verdict: "ask" | "deny"; readonly reason: string; readonly hint: string; readonly rule: Rule };

const APPROVE = "toolcrib pins diff shows what changed; toolcrib pins approve accepts it.";
const REPAIR = "Bring back an earlier version of the file, or remove it to pin everything anew.";
const ALLOW: PinVerdict = { verdict: "allow" };

export function changedVerdict(mode: PinMode, server: string, tool: string, file: string): PinVerdict {
  return refusal(mode, file, `the definition of ${tool} of the server ${server} has changed since it was pinned`, APPROVE);
}

/** Nothing can be shown to be unchanged, so the two modes that promise something let nothing pass by itself. */
export function unusableVerdict(mode: PinMode, file: string): PinVerdict {
  return refusal(mode, file, `${file} cannot be used, so no definition can be compared with its pin`, REPAIR);
}

function refusal(mode: PinMode, file: string, reason: string, hint: string): PinVerdict {
  if (mode === "off" || mode === "warn") return ALLOW;
  const rule: Rule = { level: "pin", list: "pins", pattern: mode, where: file };
  return { verdict: mode === "ask" ? "ask" : "deny", reason, hint, rule };
}
