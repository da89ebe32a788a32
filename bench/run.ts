/** `npm run bench [name …]`: runs the benches, prints their ratios, and keeps them under bench/results. */
import { join } from "node:path";
import type { Report } from "./bench.ts";
import { keep, putIntoDocument } from "./keep.ts";
import { machineFacts, machineLine } from "./machine.ts";
import { type BenchOptions, parseOptions } from "./options.ts";
import { number, renderTable } from "./table.ts";

interface Finished {
  readonly text: string;
  readonly json: object;
}

const BENCHES: Readonly<Record<string, (options: BenchOptions) => Promise<Finished>>> = {
  async gateway(options) {
    const { measureGateway } = await import("./gateway.bench.ts");
    const { renderGateway, renderOutcome } = await import("./print-gateway.ts");
    const report = await measureGateway(options, say);
    if (options.docs !== undefined) putIntoDocument(options.docs, `${machineLine()}\n\n${renderOutcome(report)}`);
    return { text: renderGateway(report), json: { extent: options.extent, ...report } };
  },
  async hub(options) {
    const { measureHub, renderHub } = await import("./hub.bench.ts");
    const report = await measureHub(options, say);
    return { text: renderHub(report), json: report };
  },
  async search({ extent }) {
    const { measureSearch, SEARCH_SIZE } = await import("./search.bench.ts");
    say("search …");
    const report = await measureSearch(SEARCH_SIZE[extent]);
    return { text: renderReport(report), json: report };
  },
  async skills({ extent }) {
    const { measureSkills, SKILLS_SIZE } = await import("./skills.bench.ts");
    say("skills …");
    const report = await measureSkills(SKILLS_SIZE[extent]);
    return { text: renderReport(report), json: report };
  },
  async rules({ extent }) {
    const { measureRules, RULES_SIZE } = await import("./rules.bench.ts");
    say("rules …");
    const report = await measureRules(RULES_SIZE[extent]);
    return { text: renderReport(report), json: report };
  },
  async overview({ extent }) {
    const { measureOverview, OVERVIEW_SIZE } = await import("./overview.bench.ts");
    say("overview …");
    const report = await measureOverview(OVERVIEW_SIZE[extent]);
    return { text: renderReport(report), json: report };
  },
};

const options = parseOptions(process.argv.slice(2), join(import.meta.dirname, "results"));
if ("problem" in options) {
  console.error(options.problem);
  process.exitCode = 2;
} else {
  process.exitCode = await runBenches(options);
}

async function runBenches(chosen: BenchOptions): Promise<number> {
  const unknown = chosen.benches.filter((name) => !Object.hasOwn(BENCHES, name));
  if (unknown.length > 0) {
    console.error(`There is no bench "${unknown.join('", "')}". Benches: ${Object.keys(BENCHES).join(", ")}.`);
    return 2;
  }
  const machine = machineFacts();
  console.log(`${machineLine()}\n`);
  if (chosen.extent === "smoke")
    console.log("Only a smoke run: numbers mean nothing, and sizes are smaller than titles say.\n");
  for (const [name, run] of Object.entries(BENCHES)) {
    if (chosen.benches.length > 0 && !chosen.benches.includes(name)) continue;
    const start = performance.now();
    const { text, json } = await run(chosen);
    console.log(`${text}\n`);
    const seconds = Math.round((performance.now() - start) / 1000);
    keep(chosen.out, name, { time: new Date().toISOString(), seconds, machine, ...json });
  }
  return 0;
}

function renderReport({ title, baseline, rows }: Report): string {
  const cells = rows.map(({ what, ratio, p50Us, p95Us }) => [what, number(ratio), number(p50Us), number(p95Us)]);
  return renderTable([title, `× ${baseline}`, "p50 µs", "p95 µs"], cells);
}

/** With the seconds since the start: the whole is to end within 20 minutes. */
function say(line: string): void {
  process.stderr.write(`${Math.round(performance.now() / 1000)} s ${line}\n`);
}
