/** The line that a key leads to; undefined for other keys. */
export function lineAfter(key: string, current: number, count: number): number | undefined {
  const at = { ArrowDown: current + 1, j: current + 1, ArrowUp: current - 1, k: current - 1, Home: 0, End: count - 1 }[
    key
  ];
  return at === undefined || count === 0 ? undefined : Math.min(Math.max(at, 0), count - 1);
}
