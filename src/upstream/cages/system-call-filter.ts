/**
 * The system calls that a program in a bubblewrap cage is refused: keyrings of the kernel, which no namespace keeps
 * apart, so that it could read the hub's; and two that only widen what there is of the kernel to attack. Assembled by
 * hand, because the only library for it is native, and the program is a list of comparisons.
 */

/** `struct sock_filter`, from linux/filter.h: a code, two jumps and a number. */
type Instruction = readonly [code: number, ifTrue: number, ifFalse: number, number: number];

const LOAD = 0x20;
const AND = 0x54;
const JUMP_IF_EQUAL = 0x15;
const RETURN = 0x06;

/** Offsets in `struct seccomp_data`. */
const CALL = 0;
const ARCHITECTURE = 4;

const ALLOW = 0x7fff_0000;
/** SECCOMP_RET_ERRNO with EPERM, as podman and docker answer. */
const REFUSE = 0x0005_0001;
/** The same calls with other sizes of types (x32) differ in this bit only. */
const WITHOUT_X32 = 0xbfff_ffff;

/** AUDIT_ARCH_… and the numbers of add_key, request_key, keyctl, bpf and userfaultfd there. */
type CallTable = readonly [architecture: number, ...calls: number[]];

/** What a kernel of that kind runs: its own programs and those of 32 bits. */
const TABLES: Readonly<Partial<Record<NodeJS.Architecture, readonly CallTable[]>>> = {
  x64: [
    [0xc000_003e, 248, 249, 250, 321, 323],
    [0x4000_0003, 286, 287, 288, 357, 374],
  ],
  arm64: [
    [0xc000_00b7, 217, 218, 219, 280, 282],
    [0x4000_0028, 309, 310, 311, 386, 388],
  ],
};

/** As `--seccomp` reads it; undefined on a processor whose numbers are not known here. */
export function systemCallFilter(architecture: NodeJS.Architecture = process.arch): Uint8Array | undefined {
  const tables = TABLES[architecture];
  if (tables === undefined) return undefined;
  const program: Instruction[] = [
    [LOAD, 0, 0, ARCHITECTURE],
    ...tables.flatMap(callsOf),
    // Nothing else can be run by such a kernel.
    [RETURN, 0, 0, REFUSE],
  ];
  const bytes = Buffer.alloc(program.length * 8);
  for (const [index, [code, ifTrue, ifFalse, number]] of program.entries()) {
    // Both processors have the lowest byte first.
    bytes.writeUInt16LE(code, index * 8);
    bytes.writeUInt8(ifTrue, index * 8 + 2);
    bytes.writeUInt8(ifFalse, index * 8 + 3);
    bytes.writeUInt32LE(number, index * 8 + 4);
  }
  return bytes;
}

/** Passed over for programs of another kind; decides for its own. */
function callsOf([architecture, ...calls]: CallTable): Instruction[] {
  const decision: Instruction[] = [
    [LOAD, 0, 0, CALL],
    [AND, 0, 0, WITHOUT_X32],
    ...calls.map((call, index): Instruction => [JUMP_IF_EQUAL, calls.length - index, 0, call]),
    [RETURN, 0, 0, ALLOW],
    [RETURN, 0, 0, REFUSE],
  ];
  return [[JUMP_IF_EQUAL, 0, decision.length, architecture], ...decision];
}
