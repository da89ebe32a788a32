/** Changes of the table of pins; each gives a new table. */
import type { Pin } from "../../guard/pins/compare.ts";
import { type PinTable, sorted } from "./pin-file.ts";

export interface PinOf {
  readonly server: string;
  /** The tool's own name. */
  readonly name: string;
  readonly pin: Pin;
}

/** A pin that is there already stays unless `replace` is set. */
export function withPins(table: PinTable, pins: readonly PinOf[], options: { replace?: boolean } = {}): PinTable {
  if (pins.length === 0) return table;
  const result = new Map([...table].map(([id, tools]) => [id, new Map(tools)]));
  for (const { server, name, pin } of pins) {
    let tools = result.get(server);
    if (tools === undefined) result.set(server, (tools = new Map()));
    if (options.replace === true || !tools.has(name)) tools.set(name, pin);
  }
  return result;
}

/** A server without pins is not in the table. */
export function withoutPins(table: PinTable, gone: (pin: PinOf) => boolean): PinTable {
  return withPins(
    new Map(),
    pinsIn(table).filter((pin) => !gone(pin)),
  );
}

export function pinsIn(table: PinTable): PinOf[] {
  return [...table].flatMap(([server, tools]) => [...tools].map(([name, pin]) => ({ server, name, pin })));
}

export function isSamePin(a: Pin | undefined, b: Pin): boolean {
  if (a === undefined || a.fingerprint !== b.fingerprint || a.pinnedAt !== b.pinnedAt) return false;
  return JSON.stringify(sorted(a.definition)) === JSON.stringify(sorted(b.definition));
}
