/** The cost of figures of calls from the sums that the store keeps, beside reading the log, in CPU time. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RANGE_NAMES } from "../src/contract/stats-ranges.ts";
import { callOfLine, statsOf } from "../src/hub/audit/stats.ts";
import { openStore } from "../src/store/open-store.ts";
import type { Store } from "../src/store/store.ts";
import { blockOf, linesOf } from "../src/telemetry/audit/files.ts";
import { cpuInTurns, type Report, rowOf } from "./bench.ts";

export interface OverviewBenchOptions {
  readonly records: number;
  readonly rounds: number;
}

export const OVERVIEW_SIZE = {
  full: { records: 1_000_000, rounds: 5 },
  quick: { records: 100_000, rounds: 5 },
  smoke: { records: 2000, rounds: 2 },
} as const;

const DAYS = 30;
const LINES_AT_ONCE = 500;
const LINES_PER_FILE = 20_000;

/** The 30 days before now: 160 tools of 8 servers, used by 5 clients, the first of each most. */
export async function measureOverview({ records, rounds }: OverviewBenchOptions): Promise<Report> {
  const home = mkdtempSync(join(tmpdir(), "toolcrib-bench-"));
  const store = await openStore({ home });
  if (store === undefined) throw new Error("no store");
  try {
    const now = Date.now();
    await fill(store, records, now);
    const cases = {
      log: () => readLog(store),
      ...Object.fromEntries(
        RANGE_NAMES.map((range) => [range, async () => void (await statsOf({ range, now }, store.audit.sums))]),
      ),
    };
    const times = await cpuInTurns(cases, { rounds, warmup: 1, each: 1 });
    const of = (name: string): number[] => times[name] ?? [];
    return {
      title: `CPU of the overview over ${records.toLocaleString("en")} records of 30 days`,
      baseline: "the log read line by line",
      rows: [
        rowOf("the log read line by line", of("log"), of("log")),
        ...RANGE_NAMES.map((range) => rowOf(range, of(range), of("log"))),
      ],
    };
  } finally {
    await store.close();
    rmSync(home, { recursive: true, force: true });
  }
}

/** The least that figures without sums would need. */
async function readLog(store: Store): Promise<void> {
  for (const { file } of await store.audit.files()) {
    for (const line of linesOf(await store.audit.textOf(file))) callOfLine(line);
  }
}

async function fill(store: Store, records: number, now: number): Promise<void> {
  let seed = 1;
  const random = (): number => (seed = (seed * 48_271) % 2_147_483_647) / 2_147_483_647;
  const pick = (count: number): number => Math.floor(random() ** 2 * count);
  for (let done = 0; done < records;) {
    const file = { name: `bench-${Math.floor(done / LINES_PER_FILE)}`, chain: "bench" };
    const [lines, firstLine]: [string[], number] = [[], done % LINES_PER_FILE];
    for (; lines.length < LINES_AT_ONCE && done < records; done += 1) {
      const [server, tool] = [pick(8), pick(20)];
      const line = {
        type: "call",
        time: new Date(now - DAYS * 86_400_000 * (1 - done / records)).toISOString(),
        callId: `call-${done}`,
        ...{ session: "s", door: "mcp", role: pick(3) === 0 ? null : "dev", client: { name: `client-${pick(5)}` } },
        ...{
          kind: "tool",
          name: `server${server}__tool${tool}`,
          origin: { source: `server${server}`, name: `tool${tool}` },
        },
        ...{ decision: "allow", rule: null, outcome: random() < 0.03 ? "timeout" : "ok" },
        ...{ durationMs: Math.round(Math.exp(random() * 8)), resultBytes: Math.round(Math.exp(random() * 12)) },
        ...{ findings: [], seq: done, prev: "", hash: "" },
      };
      lines.push(`${JSON.stringify(line)}\n`);
    }
    await store.audit.append(blockOf(file, firstLine, lines.join("")));
  }
  while (await store.audit.sumUpSome(callOfLine, now));
}
