const FIRST_MS = 300;
const LONGEST_MS = 20_000;

/** How long to wait before the next attempt: twice as long each time, and never all clients at once. */
export function waitBefore(attempt: number, random: () => number = Math.random): number {
  const most = Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(attempt, 10));
  return most / 2 + (random() * most) / 2;
}
