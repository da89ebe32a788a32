/** Bare numbers instead of names: servers that come and go. */
import { addressesIn } from "../addresses.ts";
import type { ScannedText } from "../scanned-text.ts";
import type { Sign } from "../sign.ts";
import { LINES_PER_TURN, type Rule } from "./rule.ts";

export const rawAddress: Rule = { hint: /\/\/(?:[^/\s@]{0,60}@)?[\d[]/, find };

function* find(text: ScannedText): Generator<Sign | undefined> {
  if (text.kind === "data") return;
  for (const line of text.lines) {
    if (line.number % LINES_PER_TURN === 0) yield undefined;
    if (!/\d\.\d|\/\/\d|\/\/0x|\[[0-9a-f]{0,4}:/.test(line.plain)) continue;
    const address = addressesIn(line.plain).find(
      ({ kind, disguised }) => kind === "number" || (disguised && kind !== "local"),
    );
    if (address === undefined || !line.plain.includes("://")) continue;
    yield address.disguised
      ? {
          code: "raw_address",
          severity: "refuse",
          message: `The address ${address.host} is written so that it does not look like one.`,
          line,
          near: address.url,
          concrete: true,
        }
      : {
          code: "raw_address",
          severity: "warn",
          message: `An address of bare numbers (${address.host}) says nothing about who answers there.`,
          line,
          near: address.url,
          concrete: true,
        };
  }
}
