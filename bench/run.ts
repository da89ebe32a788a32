/** `npm run bench [name …]`: runs the benches, prints their ratios, and keeps them under bench/results. */
import { mkdirSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import type { Bench, Report } from "./bench.ts";

const BENCHES: Readonly<Record<string, () => Promise<{ bench: Bench }>>> = {
  search: () => import("./search.bench.ts"),
};

const names = process.argv.slice(2);
const unknown = names.filter((name) => !Object.hasOwn(BENCHES, name));
if (unknown.length > 0) {
  console.error(`There is no bench "${unknown.join('", "')}". Benches: ${Object.keys(BENCHES).join(", ")}.`);
  process.exitCode = 2;
} else {
  for (const [name, load] of Object.entries(BENCHES)) {
    if (names.length > 0 && !names.includes(name)) continue;
    const { bench } = await load();
    console.error(`${name}: ${bench.about} …`);
    const report = await bench.run();
    print(report);
    keep(name, report);
  }
}

function print({ title, baseline, rows }: Report): void {
  const cells = [
    [title, `ratio to ${baseline}`, "p50 µs", "p95 µs"],
    ...rows.map(({ what, ratio, p50Us, p95Us }) => [what, ratio.toFixed(2), p50Us.toFixed(0), p95Us.toFixed(0)]),
  ];
  const widths = cells[0]?.map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0))) ?? [];
  for (const row of cells) {
    const padded = row.map((cell, column) =>
      column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0),
    );
    console.log(padded.join("  "));
  }
}

function keep(name: string, report: Report): void {
  const folder = join(import.meta.dirname, "results");
  mkdirSync(folder, { recursive: true });
  const machine = {
    node: process.version,
    platform: process.platform,
    cpus: cpus().length,
    cpu: cpus()[0]?.model ?? "",
  };
  const file = join(folder, `${name}.json`);
  writeFileSync(file, `${JSON.stringify({ time: new Date().toISOString(), machine, ...report }, null, 2)}\n`);
}
