/** Lists of numbers of two bytes as one list, each behind its length: for tables that the build makes and a program only reads. */

export function packLists(lists: readonly ArrayLike<number>[]): Uint16Array {
  const packed = new Uint16Array(lists.reduce((sum, { length }) => sum + 2 + length, 0));
  let end = 0;
  for (const list of lists) {
    packed[end] = list.length & 0xffff;
    packed[end + 1] = list.length >>> 16;
    end += 2;
    for (let at = 0; at < list.length; at += 1) {
      const value = list[at] ?? 0;
      if (value > 0xffff) throw new RangeError(`${value} does not fit into two bytes.`);
      packed[end] = value;
      end += 1;
    }
  }
  return packed;
}

/** Views, not copies. */
export function unpackLists(packed: Uint16Array): Uint16Array[] {
  const lists: Uint16Array[] = [];
  for (let at = 0; at < packed.length;) {
    const from = at + 2;
    at = from + (packed[at] ?? 0) + (packed[at + 1] ?? 0) * 0x10000;
    lists.push(packed.subarray(from, at));
  }
  return lists;
}
