/** Index of the last of the rising values, or of the first `count` of them, that is at most `value`; -1 if none is. */
export function lastAtOrBefore(values: ArrayLike<number>, value: number, count = values.length): number {
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((values[middle] ?? 0) <= value) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
