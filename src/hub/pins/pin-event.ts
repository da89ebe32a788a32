/** What pins tell: of single pins, and of what happened to them. */
import type { PinComparison, PinState } from "../../guard/pins/compare.ts";
import { renderDiff } from "../../guard/pins/render-diff.ts";

export type PinEvent =
  /** Tools that were seen for the first time. `later`: on a server that had pins already, so nobody has looked at them. */
  | { readonly type: "recorded"; readonly server: string; readonly tools: readonly string[]; readonly later: boolean }
  /** Told once for each new definition. */
  | { readonly type: "changed"; readonly server: string; readonly tool: string; readonly diff: readonly string[] }
  | { readonly type: "approved"; readonly server: string; readonly tools: readonly string[] }
  /** The file was removed. What is known of it still holds and is written again. */
  | { readonly type: "removed"; readonly file: string; readonly tools: number }
  /** Somebody else changed pins in the file: by approving, resetting or editing. */
  | { readonly type: "edited"; readonly changed: readonly PinName[]; readonly forgotten: readonly PinName[] }
  /** Verdicts may differ from before: somebody approved, reset or edited the pins. */
  | { readonly type: "updated" }
  | { readonly type: "problem"; readonly message: string; readonly hint: string };

export interface PinName {
  readonly server: string;
  readonly tool: string;
}

export interface PinEntry {
  readonly server: string;
  readonly tool: string;
  /** unknown: the server has not been asked. */
  readonly state: Exclude<PinState, "new"> | "unknown";
  readonly fingerprint: string;
  readonly pinnedAt: string;
}

export interface PinDiff {
  readonly server: string;
  readonly tool: string;
  /** null for a tool that was not pinned before. */
  readonly before: string | null;
  readonly after: string;
  readonly diff: readonly string[];
}

export function diffOf(server: string, compared: Extract<PinComparison, { state: "changed" | "new" }>): PinDiff {
  const after = compared.after.fingerprint;
  if (compared.state === "new") return { server, tool: compared.name, before: null, after, diff: [] };
  const diff = renderDiff(compared.pin.definition, compared.after.definition);
  return { server, tool: compared.name, before: compared.pin.fingerprint, after, diff };
}
