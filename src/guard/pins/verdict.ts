/** The verdict of the pins on one tool, prompt, resource or template, for policy. */
import type { Rule } from "../../model/decision.ts";
import type { Offered } from "./compare.ts";

/** off: not compared. warn: reported. ask: each use needs approval. block: invisible until approved. */
export type PinMode = "off" | "warn" | "ask" | "block";

export type PinVerdict =
  | { readonly verdict: "allow" }
  | { readonly verdict: "ask" | "deny"; readonly reason: string; readonly hint: string; readonly rule: Rule };

const APPROVE = "toolcrib pins diff shows what changed; toolcrib pins approve accepts it.";
const REPAIR = "Bring back an earlier version of the file, or remove it while no hub runs to pin everything again.";
const ALLOW: PinVerdict = { verdict: "allow" };

/** Something whose definition is not the pinned one; or, where there are no usable pins, any. */
export interface Unpinned extends Pick<Offered, "kind" | "name" | "fingerprint"> {
  readonly server: string;
}

export function changedVerdict(mode: PinMode, thing: Unpinned, file: string): PinVerdict {
  const reason = `the definition of ${thing.name} of the server ${thing.server} has changed since it was pinned`;
  return refusal(mode, thing, file, reason, APPROVE);
}

/** It came after its server was pinned, so there is nothing that it could be compared with. */
export function newVerdict(mode: PinMode, thing: Unpinned, file: string): PinVerdict {
  const reason = `the ${thing.kind} ${thing.name} is new since the server ${thing.server} was pinned`;
  return refusal(mode, thing, file, reason, APPROVE);
}

/** Nothing can be shown to be unchanged, so the two modes that promise something let nothing pass by itself. */
export function unusableVerdict(mode: PinMode, thing: Unpinned, file: string): PinVerdict {
  return refusal(mode, thing, file, `${file} cannot be used, so no definition can be compared with its pin`, REPAIR);
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
