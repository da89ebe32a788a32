/** Changes of the table of pins; each returns a new table. */
import { type Pin, pinKey } from "../../guard/pins/compare.ts";
import { type PinTable, sorted } from "./pin-file.ts";

export interface PinOf {
  readonly server: string;
  readonly pin: Pin;
  /** The fingerprint of the pin in whose place it comes; without one it comes only where there is none. */
  readonly replaces?: string;
}

/** A pin that is there already stays unless `replace` is set. */
export function withPins(table: PinTable, pins: readonly PinOf[], options: { replace?: boolean } = {}): PinTable {
  if (pins.length === 0) return table;
  const result = new Map([...table].map(([id, known]) => [id, new Map(known)]));
  for (const { server, pin, replaces } of pins) {
    let known = result.get(server);
    if (known === undefined) result.set(server, (known = new Map()));
    const key = pinKey(pin);
    const before = known.get(key);
    if (options.replace === true || before === undefined || before.fingerprint === replaces) known.set(key, pin);
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
  return [...table].flatMap(([server, pins]) => [...pins.values()].map((pin) => ({ server, pin })));
}

export function isSamePin(a: Pin | undefined, b: Pin): boolean {
  if (a === undefined || a.fingerprint !== b.fingerprint || a.pinnedAt !== b.pinnedAt) return false;
  return JSON.stringify(sorted(a.definition)) === JSON.stringify(sorted(b.definition));
}
