import { expect, it } from "vitest";
import { measureSearch } from "../../bench/search.bench.ts";

// Medians of samples taken in turns: a busy machine slows both down. The margin is about threefold.
it(
  "[guard-05d] a query over 5,000 tools costs less than one direct HTTP call",
  { retry: 2, timeout: 60_000 },
  async () => {
    const { rows } = await measureSearch({ tools: 5000, rounds: 600 });
    const query = rows.find((row) => row.what.startsWith("one query"));
    expect(query?.p50Us).toBeGreaterThan(0);
    expect(query?.ratio).toBeLessThan(1);
  },
);
