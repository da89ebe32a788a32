/**
 * A text in memory that several threads read at once, each the parts that no other has taken yet. Sent to them in messages, its parts
 * would be copied twice, both times into memory that the system has to provide first.
 */
export interface SharedText {
  readonly memory: SharedArrayBuffer;
  readonly length: number;
  /** ASCII has a byte for each unit, all else two. */
  readonly encoding: "latin1" | "utf16le";
}

/** The findings in a part of the text, and its number. Parts without findings are left out. */
export type ReadPart<Found> = readonly [part: number, found: readonly Found[]];

/** How many parts are taken; the units follow. */
const HEADER_BYTES = Int32Array.BYTES_PER_ELEMENT;
const MAX_SPARE_BYTES = 4 * 1024 * 1024;
/** Of a text that no one reads any more: the next one needs no new pages. Until the next full collection. */
let spare: WeakRef<SharedArrayBuffer> | undefined;

/**
 * Returns the findings of all readers, in the order of the text.
 * @param read Has a thread call `readParts`; it is called once for each reader.
 */
export async function readTogether<Found>(
  text: string,
  readers: number,
  read: (shared: SharedText) => Promise<readonly ReadPart<Found>[]>,
): Promise<Found[]> {
  const shared = share(text);
  const parts = await Promise.all(Array.from({ length: readers }, () => read(shared)));
  // Not after a failure: another thread may go on reading, and would take parts of the next text, which then no one reads for it.
  if (shared.memory.byteLength <= MAX_SPARE_BYTES) spare = new WeakRef(shared.memory);
  return parts
    .flat()
    .toSorted(([one], [other]) => one - other)
    .flatMap(([, found]) => found);
}

function share(text: string): SharedText {
  const { length } = text;
  const bytes = HEADER_BYTES + 2 * length;
  const known = spare?.deref();
  spare = undefined;
  const memory = known !== undefined && known.byteLength >= bytes ? known : new SharedArrayBuffer(bytes);
  new Int32Array(memory, 0, 1)[0] = 0;
  const units = Buffer.from(memory, HEADER_BYTES);
  // There is room for more than ASCII needs, so that a longer character shows by its length.
  if (units.write(text, "utf8") === length) return { memory, length, encoding: "latin1" };
  units.write(text, "utf16le");
  return { memory, length, encoding: "utf16le" };
}

/** In a thread: reads part after part, of those that no other thread has taken, until none is left. */
export function readParts<Found>(
  { memory, length, encoding }: SharedText,
  parts: readonly { readonly from: number; readonly to: number }[],
  read: (part: string, from: number) => readonly Found[],
): ReadPart<Found>[] {
  const taken = new Int32Array(memory, 0, 1);
  const size = encoding === "latin1" ? 1 : 2;
  const units = Buffer.from(memory, HEADER_BYTES, size * length);
  const all: ReadPart<Found>[] = [];
  for (;;) {
    const at = Atomics.add(taken, 0, 1);
    const part = parts[at];
    if (part === undefined) return all;
    const found = read(units.toString(encoding, size * part.from, size * part.to), part.from);
    if (found.length > 0) all.push([at, found]);
  }
}
