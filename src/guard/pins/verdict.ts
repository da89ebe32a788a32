/** What the pins say of one tool, for policy. */
import type { Rule } from "../../model/decision.ts";

/** off: not looked at. warn: told of. ask: somebody is asked at each call. block: invisible until approved. */
export type PinMode = "off" | "warn" | "ask" | "block";

export type PinVerdict =
  | { readonly verdict: "allow" }
  | { readonly verdict: "ask" | "deny"; readonly reason: string; readonly hint: string; readonly rule: Rule };

const APPROVE = "toolcrib pins diff shows what changed; toolcrib pins approve accepts it.";
const REPAIR = "Bring back an earlier version of the file, or remove it while no hub runs to pin everything anew.";
const ALLOW: PinVerdict = { verdict: "allow" };

/** A tool whose definition is not the pinned one; or, where there are no usable pins, any. */
export interface Unpinned {
  readonly server: string;
  readonly name: string;
  /** Of the definition that is asked about. */
  readonly fingerprint: string;
}

export function changedVerdict(mode: PinMode, tool: Unpinned, file: string): PinVerdict {
  const reason = `the definition of ${tool.name} of the server ${tool.server} has changed since it was pinned`;
  return refusal(mode, tool, file, reason, APPROVE);
}

/** Nothing can be shown to be unchanged, so the two modes that promise something let nothing pass by itself. */
export function unusableVerdict(mode: PinMode, tool: Unpinned, file: string): PinVerdict {
  return refusal(mode, tool, file, `${file} cannot be used, so no definition can be compared with its pin`, REPAIR);
}

/**
 * The rule names the definition, so that a yes to it is none to the next. The whole fingerprint, because a server that
 * chooses both definitions finds two with the same beginning in no time.
 */
function refusal(mode: PinMode, { fingerprint }: Unpinned, file: string, reason: string, hint: string): PinVerdict {
  if (mode === "off" || mode === "warn") return ALLOW;
  const rule: Rule = { level: "pin", list: "pins", pattern: `${mode} ${fingerprint}`, where: file };
  return { verdict: mode === "ask" ? "ask" : "deny", reason, hint, rule };
}
