/** How much JSON is large, in bytes or characters: enough that a pass over it is worth being put off or spared. */
export const LARGE_JSON = 64 * 1024;

/**
 * Bytes of a value as JSON in UTF-8, without building that JSON. Exact up to `limit`; above it the walk stops and the
 * answer is only known to be larger than `limit`. A cyclic value is larger than any finite limit.
 * @param later Gets the texts that are large by themselves. They count as if no character of theirs took more than one byte;
 *   `extraBytes` tells the rest.
 */
export function resultBytes(result: unknown, limit: number = Number.MAX_SAFE_INTEGER, later?: string[]): number {
  let bytes = 0;
  // An explicit stack: nesting that JSON.parse survives would overflow a recursive walk.
  const pending: unknown[] = [result];
  while (pending.length > 0 && bytes <= limit) {
    const value = pending.pop();
    if (typeof value === "string") {
      if (later === undefined || value.length <= LARGE_JSON) bytes += stringBytes(value, limit - bytes);
      else {
        bytes += value.length + 2;
        later.push(value);
      }
    } else if (Array.isArray(value)) {
      bytes += 2 + Math.max(0, value.length - 1);
      for (const element of value) pending.push(isOmitted(element) ? null : element);
    } else if (typeof value === "object" && value !== null && !hasToJson(value)) {
      let members = 0;
      // A non-null object that is not an array: any key of it may be read. Pairs of keys and values would be made for nothing.
      const holder = value as Readonly<Record<string, unknown>>;
      for (const key of Object.keys(holder)) {
        const member = holder[key];
        if (isOmitted(member)) continue;
        members += 1;
        bytes += stringBytes(key, limit - bytes) + 1;
        pending.push(member);
      }
      bytes += 2 + Math.max(0, members - 1);
    } else {
      bytes += Buffer.byteLength(JSON.stringify(value) ?? "null");
    }
  }
  return bytes;
}

/** Whether objects and lists in a value are inside each other more often than this. */
export function isDeeperThan(most: number, value: unknown): boolean {
  const inside = (each: unknown): unknown[] =>
    typeof each === "object" && each !== null ? Object.values(each).filter((member) => typeof member === "object") : [];
  let level = [value];
  for (let depth = 0; depth <= most && level.length > 0; depth += 1) level = level.flatMap(inside);
  return level.length > 0;
}

export function extraBytes(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + stringBytes(text, Number.MAX_SAFE_INTEGER) - text.length - 2, 0);
}

/** A class that extends it adds its fields to the object that it is given. */
const Existing = function (value: object): object {
  return value;
  // Called with `new`, a function makes what it returns.
} as unknown as new (value: object) => object;

/**
 * What is known of the JSON of a value, in a private field of the value itself. In a WeakMap it would outlive the value: what such a map
 * holds survives the collections of young objects, so that every large result would fill the old generation.
 */
class Annotated extends Existing {
  #json: KnownJson | undefined;

  static jsonOf(value: object): KnownJson | undefined {
    return #json in value ? value.#json : undefined;
  }

  static keep(value: object, json: KnownJson): void {
    (#json in value ? value : new Annotated(value)).#json = json;
  }
}

interface KnownJson {
  /** That it was parsed from. */
  readonly source: string | undefined;
  /** That was made of it. */
  readonly made?: string;
}

/**
 * Remembers the JSON that a large value was parsed from, as far as it is known where it begins and ends. If it is longer than that,
 * it is not used.
 */
export function keepSource(value: object, source: string | undefined): void {
  Annotated.keep(value, { source });
}

/** Whether `keepSource` had it: each pass over it is then long enough to let others have a turn before the next one. */
export function isLarge(value: object): boolean {
  return Annotated.jsonOf(value) !== undefined;
}

/**
 * Makes the JSON of a value, for `encodedAhead`, at a moment when there is nothing else to do. Returns its length in bytes, or
 * undefined if it cannot be made. Only for a value that no one changes, nor has changed since it was parsed.
 */
export function encodeAhead(value: object): number | undefined {
  try {
    const source = Annotated.jsonOf(value)?.source;
    const made = source !== undefined && isAsWritten(source, value) ? source : JSON.stringify(value);
    Annotated.keep(value, { source, made });
    return Buffer.byteLength(made);
  } catch {
    // Nested more deeply than the engine writes.
    return undefined;
  }
}

/** Where values are shorter than this on the average, making their JSON takes no longer than comparing it. */
const MIN_MEAN_LENGTH = 128;
/** Where escapes are closer together than this on the average, counting all bytes takes less than looking at each of them. */
const MIN_MEAN_GAP = 64;
/** Of a character that has no shorter escape. */
const CONTROL_ESCAPE = /u00(?:0[0-7bef]|1[\da-f])/iy;
const SLASH = 0x2f;
const LETTER_U = 0x75;

/**
 * Whether the JSON that a value was parsed from is as good as what we would write: in another order at most. Told by its length, because
 * white space, digits without a meaning and members that later ones of the same name replace make it longer, and nothing makes it
 * shorter. So no client reads anything in it that was not read here.
 */
function isAsWritten(source: string, value: unknown): boolean {
  let left = source.length;
  let values = left / MIN_MEAN_LENGTH;
  const pending: unknown[] = [value];
  while (pending.length > 0) {
    const each = pending.pop();
    if (typeof each === "string") left -= each.length + 2;
    else if (typeof each !== "object" || each === null) {
      if (typeof each === "number" && hasShorterForm(each)) return false;
      left -= String(each).length;
    } else {
      const isList = Array.isArray(each);
      const members: readonly unknown[] = isList ? each : Object.values(each);
      values -= members.length;
      if (values < 0) return false;
      left -= Math.max(2, members.length + 1);
      if (!isList) for (const key of Object.keys(each)) left -= key.length + 3;
      for (const member of members) pending.push(member);
    }
  }
  let rest = source.length / MIN_MEAN_GAP;
  for (let at = source.indexOf("\\"); at !== -1; at = source.indexOf("\\", at + 2)) {
    // No escape is shorter than ours either.
    if ((rest -= 1) < 0) return Buffer.byteLength(source) === resultBytes(value);
    const escaped = source.charCodeAt(at + 1);
    left -= 1;
    if (escaped === SLASH) return false;
    if (escaped !== LETTER_U) continue;
    CONTROL_ESCAPE.lastIndex = at + 1;
    if (!CONTROL_ESCAPE.test(source)) return false;
    left -= 4;
  }
  return left === 0;
}

/** Whether JSON has a form of the number that is shorter than ours, such as 1e5, or 1e999 for what we read as infinite. */
function hasShorterForm(number: number): boolean {
  if (!Number.isInteger(number)) return Math.abs(number) < 0.01 || !Number.isFinite(number);
  return number !== 0 && (number % 1000 === 0 || !Number.isSafeInteger(number));
}

/** The JSON of a value, if it was made before. */
export function encodedAhead(value: object): string | undefined {
  return Annotated.jsonOf(value)?.made;
}

const LONG = 256;
/** For most keys, ids and short sentences this is faster than any other way. */
const SHORT_AND_PLAIN = /^[\w .,:;!?'()/-]*$/;
const PIECE = 16_384;
/** A text that is all ASCII, two bytes at a time; with some room, so that a longer character shows by its length. */
const pairs = new Uint16Array(PIECE / 2 + 4);
const pairBytes = Buffer.from(pairs.buffer);
/** Any other text. */
const units = new Uint16Array(PIECE);
const unitBytes = Buffer.from(units.buffer);
let tables: { readonly extra: Uint8Array; readonly sizes: Uint8Array } | undefined;

function stringBytes(text: string, room: number): number {
  // UTF-8 never takes fewer bytes than UTF-16 has units.
  if (text.length > room) return text.length + 2;
  if (text.length < LONG) {
    return SHORT_AND_PLAIN.test(text) ? text.length + 2 : Buffer.byteLength(JSON.stringify(text));
  }
  const { extra, sizes } = (tables ??= { extra: extraBytesOfPairs(), sizes: bytesOfUnits() });
  let bytes = 2;
  for (let from = 0; from < text.length;) {
    let piece = text.slice(from, from + PIECE);
    if (pairBytes.write(piece, "utf8") === piece.length) {
      // A letter after the last one makes the last pair whole.
      pairBytes[piece.length] = 0x61;
      bytes += piece.length + sumOf(extra, pairs, (piece.length + 1) >>> 1);
    } else {
      // Cut between the halves of a character, each half would be counted as a lone surrogate.
      if (piece.length === PIECE && isHighSurrogate(piece.charCodeAt(PIECE - 1))) piece = piece.slice(0, -1);
      unitBytes.write(piece, "utf16le");
      bytes += piece.isWellFormed() ? sumOf(sizes, units, piece.length) : Buffer.byteLength(JSON.stringify(piece)) - 2;
    }
    from += piece.length;
  }
  return bytes;
}

/** Of ASCII in JSON, escapes included. */
const SINGLE: readonly number[] = Array.from(
  { length: 128 },
  (_, unit) => JSON.stringify(String.fromCharCode(unit)).length - 2,
);

/** Half of a pair counts two: a pair has four. */
function bytesOfUnits(): Uint8Array {
  const sizes = new Uint8Array(0x10000).fill(2, 0x80, 0x800).fill(3, 0x800).fill(2, 0xd800, 0xe000);
  sizes.set(SINGLE);
  return sizes;
}

/** By two bytes as this machine reads them as one number: how much longer they are in JSON. */
function extraBytesOfPairs(): Uint8Array {
  const extra = new Uint8Array(0x10000);
  const both = new Uint16Array(1);
  const halves = new Uint8Array(both.buffer);
  for (const [first, one] of SINGLE.entries()) {
    for (const [second, two] of SINGLE.entries()) {
      halves[0] = first;
      halves[1] = second;
      extra[both[0] ?? 0] = one + two - 2;
    }
  }
  return extra;
}

/** All it needs as parameters: the engine makes the tightest loop of that. */
function sumOf(table: Uint8Array, list: Uint16Array, count: number): number {
  let sum = 0;
  for (let at = 0; at < count; at += 1) sum += table[list[at] ?? 0] ?? 0;
  return sum;
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}

function isOmitted(value: unknown): boolean {
  return value === undefined || typeof value === "function" || typeof value === "symbol";
}

function hasToJson(value: object): boolean {
  return "toJSON" in value && typeof value.toJSON === "function";
}
