/** Lists of numbers as one list, each behind its length: for tables that the build makes and a program only reads. */

export function packLists(lists: readonly Uint32Array[]): Uint32Array {
  const packed = new Uint32Array(lists.reduce((sum, { length }) => sum + 1 + length, 0));
  let end = 0;
  for (const list of lists) {
    packed[end] = list.length;
    packed.set(list, end + 1);
    end += 1 + list.length;
  }
  return packed;
}

/** Views, not copies. */
export function unpackLists(packed: Uint32Array): Uint32Array[] {
  const lists: Uint32Array[] = [];
  for (let at = 0; at < packed.length;) {
    const from = at + 1;
    at = from + (packed[at] ?? 0);
    lists.push(packed.subarray(from, at));
  }
  return lists;
}
