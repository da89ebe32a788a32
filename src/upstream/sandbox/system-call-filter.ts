/**
 * The system calls that a program in a bubblewrap sandbox is refused: keyrings of the kernel, which no namespace keeps
 * apart, so that it could read the hub's; namespaces of its own, in which it would have capabilities again; io_uring,
 * which makes calls past this filter; setuid and setgid bits, which a file would keep outside; and two calls that only
 * widen what there is of the kernel to attack. Assembled by hand, because the only library for it is native, and the
 * program is a list of comparisons.
 */
import { notSent } from "../wire.ts";

/** `struct sock_filter`, from linux/filter.h: a code, two jumps and a number. */
type Instruction = readonly [code: number, ifTrue: number, ifFalse: number, number: number];

const LOAD = 0x20;
const AND = 0x54;
const JUMP_IF_EQUAL = 0x15;
const JUMP_IF_ANY_BIT = 0x45;
const RETURN = 0x06;

/** Offsets in `struct seccomp_data`; arguments have 64 bits, lowest byte first, and what is asked of them fits in 32. */
const CALL = 0;
const ARCHITECTURE = 4;
const argument = (index: number): number => 16 + 8 * index;

const ALLOW = 0x7fff_0000;
/** SECCOMP_RET_ERRNO with EPERM, as podman and docker answer. */
const REFUSE = 0x0005_0001;
/** With ENOSYS: libraries then use the older call, whose arguments can be read here; those of a newer one are in memory. */
const NOT_IMPLEMENTED = 0x0005_0026;
/** The same calls with other sizes of types (x32) differ in this bit only. */
const WITHOUT_X32 = 0xbfff_ffff;

/** CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET. */
const NEW_NAMESPACES = 0x7e02_0000;
/** CLONE_NEWTIME; for clone that bit belongs to a signal. */
const NEW_TIME = 0x80;
/** S_ISUID and S_ISGID. */
const SET_ID = 0o6000;
/** O_CREAT and what O_TMPFILE adds: without them the mode is not read, and may be anything. */
const MAKES_FILE = 0o100 | 0o20000000;

/** Refused if the argument has any of the bits; `only`: and that other argument any of those. */
interface Guarded {
  readonly call: number;
  readonly argument: number;
  readonly bits: number;
  readonly only?: { readonly argument: number; readonly bits: number };
}

/** Numbers of calls that are not the same everywhere; absent where this kind of processor does not have the call. */
interface CallNumbers {
  /** AUDIT_ARCH_… */
  readonly architecture: number;
  /** add_key, request_key, keyctl, bpf, userfaultfd, setns. */
  readonly refused: readonly number[];
  readonly clone: number;
  readonly unshare: number;
  readonly chmod?: number;
  readonly fchmod: number;
  readonly fchmodat: number;
  readonly open?: number;
  readonly creat?: number;
  readonly openat: number;
  readonly mknod?: number;
  readonly mknodat: number;
}

/** From 424 on the kernel gives a call one number for all: io_uring_setup, _enter and _register. */
const REFUSED_EVERYWHERE = [425, 426, 427];
/** clone3 and openat2. */
const UNKNOWN_EVERYWHERE = [435, 437];
const FCHMODAT2 = 452;

/** A kernel runs its own programs and those of 32 bits. */
const TABLES: Readonly<Partial<Record<NodeJS.Architecture, readonly CallNumbers[]>>> = {
  x64: [
    {
      architecture: 0xc000_003e,
      refused: [248, 249, 250, 321, 323, 308],
      ...{ clone: 56, unshare: 272, chmod: 90, fchmod: 91, fchmodat: 268 },
      ...{ open: 2, creat: 85, openat: 257, mknod: 133, mknodat: 259 },
    },
    {
      architecture: 0x4000_0003,
      refused: [286, 287, 288, 357, 374, 346],
      ...{ clone: 120, unshare: 310, chmod: 15, fchmod: 94, fchmodat: 306 },
      ...{ open: 5, creat: 8, openat: 295, mknod: 14, mknodat: 297 },
    },
  ],
  arm64: [
    {
      architecture: 0xc000_00b7,
      refused: [217, 218, 219, 280, 282, 268],
      ...{ clone: 220, unshare: 97, fchmod: 52, fchmodat: 53, openat: 56, mknodat: 33 },
    },
    {
      architecture: 0x4000_0028,
      refused: [309, 310, 311, 386, 388, 375],
      ...{ clone: 120, unshare: 337, chmod: 15, fchmod: 94, fchmodat: 333 },
      ...{ open: 5, creat: 8, openat: 322, mknod: 14, mknodat: 324 },
    },
  ],
};

/** As `--seccomp` reads it. Throws on a processor whose numbers are not known here: a sandbox without it would hold less. */
export function systemCallFilter(architecture: NodeJS.Architecture = process.arch): Uint8Array {
  const tables = TABLES[architecture];
  if (tables === undefined) {
    throw notSent(
      "invalid_config",
      `The sandbox cannot be made: its filter of system calls is not known for the processor ${architecture}.`,
      'bubblewrap is used on x86-64 and 64-bit ARM. Use the sandbox "container", or "none" for a program that you trust.',
    );
  }
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
function callsOf(numbers: CallNumbers): Instruction[] {
  const decision: Instruction[] = [
    [LOAD, 0, 0, CALL],
    [AND, 0, 0, WITHOUT_X32],
    ...[...numbers.refused, ...REFUSED_EVERYWHERE].flatMap((call) => returnFor(call, REFUSE)),
    ...UNKNOWN_EVERYWHERE.flatMap((call) => returnFor(call, NOT_IMPLEMENTED)),
    ...guardedCalls(numbers).flatMap(guard),
    [RETURN, 0, 0, ALLOW],
  ];
  return [[JUMP_IF_EQUAL, 0, decision.length, numbers.architecture], ...decision];
}

function guardedCalls(numbers: CallNumbers): Guarded[] {
  const { clone, unshare, chmod, fchmod, fchmodat, open, creat, openat, mknod, mknodat } = numbers;
  const mode = (call: number | undefined, at: number): Guarded[] =>
    call === undefined ? [] : [{ call, argument: at, bits: SET_ID }];
  const making = (call: number | undefined, flags: number): Guarded[] =>
    mode(call, flags + 1).map((each) => ({ ...each, only: { argument: flags, bits: MAKES_FILE } }));
  return [
    { call: clone, argument: 0, bits: NEW_NAMESPACES },
    { call: unshare, argument: 0, bits: NEW_NAMESPACES | NEW_TIME },
    ...mode(chmod, 1),
    ...mode(fchmod, 1),
    ...mode(fchmodat, 2),
    ...mode(FCHMODAT2, 2),
    ...mode(creat, 1),
    ...mode(mknod, 1),
    ...mode(mknodat, 2),
    ...making(open, 1),
    ...making(openat, 2),
  ];
}

function returnFor(call: number, result: number): Instruction[] {
  return [
    [JUMP_IF_EQUAL, 0, 1, call],
    [RETURN, 0, 0, result],
  ];
}

function guard({ call, argument: at, bits, only }: Guarded): Instruction[] {
  const decision: Instruction[] = [
    ...(only === undefined
      ? []
      : ([
          [LOAD, 0, 0, argument(only.argument)],
          [JUMP_IF_ANY_BIT, 0, 2, only.bits],
        ] satisfies Instruction[])),
    [LOAD, 0, 0, argument(at)],
    [JUMP_IF_ANY_BIT, 1, 0, bits],
    [RETURN, 0, 0, ALLOW],
    [RETURN, 0, 0, REFUSE],
  ];
  return [[JUMP_IF_EQUAL, 0, decision.length, call], ...decision];
}
