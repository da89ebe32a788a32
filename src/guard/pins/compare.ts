/** What became of definitions since they were pinned. */
import type { ToolDefinition } from "../../model/protocol.ts";

export interface Pin {
  /** SHA-256 (hex) of the canonical JSON of the definition. */
  readonly fingerprint: string;
  readonly definition: ToolDefinition;
  /** ISO time at which it was recorded or approved. */
  readonly pinnedAt: string;
}

/** By tool name, in the server's own words. */
export type ServerPins = ReadonlyMap<string, Pin>;

/** A tool as it is now; a ToolCapability is one. */
export interface CurrentTool {
  readonly definition: ToolDefinition;
  readonly fingerprint: string;
}

export type PinComparison =
  | { readonly name: string; readonly state: "new"; readonly after: CurrentTool }
  | { readonly name: string; readonly state: "same"; readonly pin: Pin }
  | { readonly name: string; readonly state: "changed"; readonly pin: Pin; readonly after: CurrentTool }
  | { readonly name: string; readonly state: "gone"; readonly pin: Pin };

export type PinState = PinComparison["state"];

/** In the order of `current`, those that are gone last. Of two definitions of one name the last counts. */
export function comparePins(pinned: ServerPins, current: Iterable<CurrentTool>): PinComparison[] {
  const byName = new Map([...current].map((tool) => [tool.definition.name, tool]));
  const compared = [...byName].map(([name, after]): PinComparison => {
    const pin = pinned.get(name);
    if (pin === undefined) return { name, state: "new", after };
    return pin.fingerprint === after.fingerprint
      ? { name, state: "same", pin }
      : { name, state: "changed", pin, after };
  });
  for (const [name, pin] of pinned) if (!byName.has(name)) compared.push({ name, state: "gone", pin });
  return compared;
}
