/** What pins report: about single pins, and about what happened to them. */
import type { Offered, PinComparison, PinKind, PinState } from "../../guard/pin-comparison.ts";
import { type DiffBudget, renderDiff } from "../../guard/definition-diff.ts";

export type PinEvent =
  /** Pinned as offered. `later`: the server had pins already, so no one has looked at these. */
  | { readonly type: "recorded"; readonly server: string; readonly pins: readonly PinName[]; readonly later: boolean }
  /** New in a server that was pinned before, and not pinned. Once for each new definition. */
  | { readonly type: "held"; readonly server: string; readonly pins: readonly PinName[] }
  /** Once for each new definition. */
  | { readonly type: "changed"; readonly pin: PinName; readonly diff: readonly string[] }
  /** Of these resources only the first are pinned. */
  | { readonly type: "too-many"; readonly server: string; readonly count: number; readonly most: number }
  /** What was pinned contains a secret, which is masked. */
  | { readonly type: "masked"; readonly file: string; readonly server: string; readonly pins: readonly PinName[] }
  | { readonly type: "approved"; readonly server: string; readonly pins: readonly PinName[] }
  /** The file was removed. What is known of it still holds and is written again. */
  | { readonly type: "removed"; readonly file: string; readonly pins: number }
  /** Somebody else changed pins in the file: by approving, resetting or editing. */
  | { readonly type: "edited"; readonly changed: readonly PinName[]; readonly forgotten: readonly PinName[] }
  /** Verdicts may differ from before: somebody approved, reset or edited the pins. */
  | { readonly type: "updated" }
  | { readonly type: "problem"; readonly message: string; readonly hint: string };

export interface PinName {
  readonly server: string;
  readonly kind: PinKind;
  /** The server's own name for it, whatever its kind: when only tools were pinned, it was always one. */
  readonly tool: string;
}

export interface PinEntry extends PinName {
  /** unknown: the server has not been asked. */
  readonly state: PinState | "unknown";
  readonly fingerprint: string;
  /** Empty for what is not pinned. */
  readonly pinnedAt: string;
}

export interface PinDiff extends PinName {
  readonly state: "changed" | "new";
  /** null for what was not pinned before. */
  readonly before: string | null;
  readonly after: string;
  readonly diff: readonly string[];
}

export function pinName(server: string, { kind, name }: Pick<Offered, "kind" | "name">): PinName {
  return { server, kind, tool: name };
}

/** `tool read`; instructions have no name. */
export function pinTitle({ kind, tool }: Pick<PinName, "kind" | "tool">): string {
  return kind === "instructions" ? "instructions" : `${kind} ${tool}`;
}

/** For a record whose origin has the name: said only of what is not a tool. */
export function kindDetail(kind: PinKind): { readonly kind?: PinKind } {
  return kind === "tool" ? {} : { kind };
}

/** In a message or a record; the rest is counted. */
export const MAX_NAMED = 20;

/** `read, prompt greet and 3 more`: a tool by its name alone. */
export function describeNames(pins: readonly PinName[]): string {
  const shown = pins.slice(0, MAX_NAMED).map((pin) => (pin.kind === "tool" ? pin.tool : pinTitle(pin)));
  return `${shown.join(", ")}${pins.length > shown.length ? ` and ${pins.length - shown.length} more` : ""}`;
}

/** `2 tools, 1 prompt`. */
export function describeCounts(pins: readonly PinName[]): string {
  const counts = Map.groupBy(pins, ({ kind }) => kind);
  const words = [...counts].map(([kind, { length }]) =>
    kind === "instructions" ? "instructions" : `${length} ${kind}${length === 1 ? "" : "s"}`,
  );
  return words.join(", ");
}

/** @param budget Of the report that it is part of. */
export function pinDiff(
  server: string,
  compared: Extract<PinComparison, { state: "changed" | "new" }>,
  budget?: DiffBudget,
): PinDiff {
  const { state, after } = compared;
  const before = state === "new" ? undefined : compared.pin;
  return {
    ...pinName(server, after),
    state,
    before: before?.fingerprint ?? null,
    after: after.fingerprint,
    // Whoever approves something new must see all of it.
    diff: renderDiff(before?.definition ?? {}, after.definition, budget),
  };
}
