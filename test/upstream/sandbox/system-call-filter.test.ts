/** The filter as the kernel would run it: a few instructions are enough to read it. */
import { describe, expect, it } from "vitest";
import { systemCallFilter } from "../../../src/upstream/sandbox/system-call-filter.ts";

const ALLOWED = 0x7fff_0000;
const REFUSED = 0x0005_0001;
const UNKNOWN = 0x0005_0026;

function decide(filter: Uint8Array, call: number, architecture: number, args: readonly number[] = []): number {
  const bytes = Buffer.from(filter);
  let value = 0;
  for (let at = 0; at < bytes.length; at += 8) {
    const number = bytes.readUInt32LE(at + 4);
    switch (bytes.readUInt16LE(at)) {
      case 0x20:
        value = number === 4 ? architecture : number === 0 ? call : (args[(number - 16) / 8] ?? 0);
        break;
      case 0x54:
        value = (value & number) >>> 0;
        break;
      case 0x15:
        at += 8 * bytes.readUInt8(at + (value === number ? 2 : 3));
        break;
      case 0x45:
        at += 8 * bytes.readUInt8(at + ((value & number) === 0 ? 3 : 2));
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
    const filter = systemCallFilter(machine);
    for (const call of refused) expect(decide(filter, call, architecture)).toBe(REFUSED);
    for (const call of [0, 1, 59, 202, 247, 251, 285, 289, 434]) {
      expect(decide(filter, call, architecture)).toBe(ALLOWED);
    }
    // 32 bits of another processor: nothing that this one runs.
    expect(decide(filter, 0, 0x1234)).toBe(REFUSED);
  });

  it.each([
    ["x64", 0xc000_003e, { clone: 56, unshare: 272, setns: 308 }],
    ["x64", 0x4000_0003, { clone: 120, unshare: 310, setns: 346 }],
    ["arm64", 0xc000_00b7, { clone: 220, unshare: 97, setns: 268 }],
    ["arm64", 0x4000_0028, { clone: 120, unshare: 337, setns: 375 }],
  ] as const)("[trust-02d] of %s refuses namespaces and io_uring to programs of %i", (machine, architecture, calls) => {
    const filter = systemCallFilter(machine);
    const answer = (call: number, ...args: number[]): number => decide(filter, call, architecture, args);
    for (const flag of [0x2_0000, 0x200_0000, 0x400_0000, 0x800_0000, 0x1000_0000, 0x2000_0000, 0x4000_0000]) {
      expect(answer(calls.clone, flag | 17)).toBe(REFUSED);
      expect(answer(calls.unshare, flag)).toBe(REFUSED);
    }
    expect(answer(calls.unshare, 0x80)).toBe(REFUSED);
    expect(answer(calls.setns, 3, 0)).toBe(REFUSED);
    for (const call of [425, 426, 427]) expect(answer(call)).toBe(REFUSED);
    for (const call of [435, 437]) expect(answer(call)).toBe(UNKNOWN);
    // A thread, a forked process with a signal above 127, files of its own.
    expect(answer(calls.clone, 0x3d_0f00)).toBe(ALLOWED);
    expect(answer(calls.clone, 0x80)).toBe(ALLOWED);
    expect(answer(calls.unshare, 0x600)).toBe(ALLOWED);
  });

  it.each([
    [
      "x64",
      0xc000_003e,
      { chmod: 90, fchmod: 91, fchmodat: 268, creat: 85, mknod: 133, mknodat: 259, open: 2, openat: 257 },
    ],
    [
      "x64",
      0x4000_0003,
      { chmod: 15, fchmod: 94, fchmodat: 306, creat: 8, mknod: 14, mknodat: 297, open: 5, openat: 295 },
    ],
    ["arm64", 0xc000_00b7, { fchmod: 52, fchmodat: 53, mknodat: 33, openat: 56 }],
    [
      "arm64",
      0x4000_0028,
      { chmod: 15, fchmod: 94, fchmodat: 333, creat: 8, mknod: 14, mknodat: 324, open: 5, openat: 322 },
    ],
  ] as const)("[trust-02e] of %s refuses setuid and setgid bits to programs of %i", (machine, architecture, calls) => {
    const filter = systemCallFilter(machine);
    const answer = (call: number, args: readonly number[]): number => decide(filter, call, architecture, args);
    const places = { chmod: 1, fchmod: 1, fchmodat: 2, creat: 1, mknod: 1, mknodat: 2, open: 2, openat: 3 };
    for (const [name, call] of [...Object.entries(calls), ["fchmodat2", 452]] as [keyof typeof places, number][]) {
      const at = places[name] ?? 2;
      const asked = (mode: number, flags = 0o101): number[] => {
        const args = [0, 0, 0, 0];
        if (name.startsWith("open")) args[at - 1] = flags;
        args[at] = mode;
        return args;
      };
      for (const mode of [0o4755, 0o2755, 0o6000, 0o104755]) expect(answer(call, asked(mode)), name).toBe(REFUSED);
      for (const mode of [0, 0o755, 0o1777]) expect(answer(call, asked(mode)), name).toBe(ALLOWED);
      if (!name.startsWith("open")) continue;
      // Without O_CREAT or O_TMPFILE nothing is made, and the mode may be anything.
      expect(answer(call, asked(0o6755, 0)), name).toBe(ALLOWED);
      expect(answer(call, asked(0o4755, 0o20200002)), name).toBe(REFUSED);
    }
  });

  it("is there for processors whose numbers are known; for others there is no cage", () => {
    expect(() => systemCallFilter("riscv64")).toThrow(expect.objectContaining({ code: "invalid_config" }));
  });
});
