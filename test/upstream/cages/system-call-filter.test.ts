/** The filter as the kernel would run it: a few instructions are enough to read it. */
import { describe, expect, it } from "vitest";
import { systemCallFilter } from "../../../src/upstream/cages/system-call-filter.ts";

const ALLOWED = 0x7fff_0000;
const REFUSED = 0x0005_0001;

function decide(filter: Uint8Array, call: number, architecture: number): number {
  const bytes = Buffer.from(filter);
  let value = 0;
  for (let at = 0; at < bytes.length; at += 8) {
    const number = bytes.readUInt32LE(at + 4);
    switch (bytes.readUInt16LE(at)) {
      case 0x20:
        value = number === 4 ? architecture : call;
        break;
      case 0x54:
        value = (value & number) >>> 0;
        break;
      case 0x15:
        at += 8 * bytes.readUInt8(at + (value === number ? 2 : 3));
        break;
      case 0x06:
        return number;
      default:
        throw new Error(`an instruction that is not known here, at ${at}`);
    }
  }
  throw new Error("it ends without a decision");
}

describe("[cage-02b] the filter of system calls", () => {
  it.each([
    ["x64", 0xc000_003e, [248, 249, 250, 321, 323]],
    ["x64", 0xc000_003e, [248, 249, 250].map((call) => call + 0x4000_0000)],
    ["x64", 0x4000_0003, [286, 287, 288]],
    ["arm64", 0xc000_00b7, [217, 218, 219]],
    ["arm64", 0x4000_0028, [309, 310, 311]],
  ] as const)("of %s refuses keyrings to programs of %i", (machine, architecture, refused) => {
    const filter = systemCallFilter(machine) ?? new Uint8Array();
    for (const call of refused) expect(decide(filter, call, architecture)).toBe(REFUSED);
    for (const call of [0, 1, 59, 202, 247, 251, 285, 289, 435]) {
      expect(decide(filter, call, architecture)).toBe(ALLOWED);
    }
    // 32 bits of another processor: nothing that this one runs.
    expect(decide(filter, 0, 0x1234)).toBe(REFUSED);
  });

  it("is there for processors whose numbers are known", () => {
    expect(systemCallFilter("riscv64")).toBeUndefined();
  });
});
