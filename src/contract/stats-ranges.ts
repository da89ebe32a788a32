/** The ranges of time of figures, apart from their schemas: the store needs them at every start. */

/** How long each range is: steps of so many seconds. */
export const STATS_RANGES = {
  "1h": { seconds: 60, steps: 60 },
  "24h": { seconds: 600, steps: 144 },
  "7d": { seconds: 3600, steps: 168 },
  "30d": { seconds: 21_600, steps: 120 },
} as const;
export type StatsRange = keyof typeof STATS_RANGES;
// The table's keys, of which there is at least one.
export const RANGE_NAMES = Object.keys(STATS_RANGES) as [StatsRange, ...StatsRange[]];
