/** `npm run bench:scale`: how far one node goes, and what more nodes give. */
import { join } from "node:path";
import { missingForCluster } from "../../test/cluster/rig/rig.ts";
import { keep, putIntoDocument } from "../keep.ts";
import { machineFacts, machineLine } from "../machine.ts";
import { FAULTS, measureFailover } from "./failover.ts";
import { measureNodes } from "./nodes.ts";
import { type Extent, type Measure, parseOptions, type ScaleOptions } from "./options.ts";
import { renderScale, type ScaleReport } from "./print.ts";
import { measureCatalog, measureProcesses } from "./servers.ts";
import { measureSessions } from "./sessions.ts";

const missing = missingForCluster();
const NEEDS_CLUSTER: readonly Measure[] = ["nodes", "failover"];

/** By how long it may take. */
const MEASURES: { readonly [Name in Measure]: (extent: Extent) => Promise<NonNullable<ScaleReport[Name]>> } = {
  nodes: (extent) =>
    measureNodes(
      extent === "full" ? { rounds: 7, burstMs: 2000, inFlight: 32 } : { rounds: 1, burstMs: 200, inFlight: 8 },
    ),
  failover: (extent) =>
    measureFailover(
      extent === "full"
        ? { times: 3, leaseMs: 4000, faults: FAULTS }
        : { times: 1, leaseMs: 1000, faults: ["stop", "kill"] },
    ),
  sessions: (extent) =>
    measureSessions({
      ...(extent === "full" ? { counts: [1000, 5000], settleMs: 15_000 } : { counts: [10, 60], settleMs: 100 }),
      cluster: extent === "full" && missing === undefined,
    }),
  processes: (extent) =>
    measureProcesses(
      extent === "full" ? { servers: 100, tools: 10, rounds: 20 } : { servers: 3, tools: 20, rounds: 2 },
    ),
  catalog: (extent) =>
    measureCatalog(extent === "full" ? { servers: 500, tools: 40, rounds: 20 } : { servers: 5, tools: 20, rounds: 2 }),
};

const options = parseOptions(process.argv.slice(2), join(import.meta.dirname, "..", "results"));
if ("problem" in options) {
  console.error(options.problem);
  process.exitCode = 2;
} else {
  process.exitCode = await runMeasures(options);
}

async function runMeasures({ measures, extent, docs, out }: ScaleOptions): Promise<number> {
  const begun = performance.now();
  const machine = machineFacts();
  const line = machineLine();
  console.log(`${line}\n`);
  if (extent === "smoke") console.log("Only a smoke run: numbers mean nothing.\n");
  const results: Partial<Record<Measure, unknown>> = {};
  const failures: Record<string, string> = {};
  for (const name of measures) {
    process.stderr.write(`${name} …\n`);
    if (missing !== undefined && NEEDS_CLUSTER.includes(name)) failures[name] = missing;
    else {
      try {
        results[name] = await MEASURES[name](extent);
      } catch (error) {
        failures[name] = error instanceof Error ? error.message : String(error);
      }
    }
  }
  // Each was made by the measure of its name.
  const report = { ...results, failures } as ScaleReport;
  const text = renderScale(report);
  console.log(text);
  if (docs !== undefined) putIntoDocument(docs, `${line}\n\n${text}`);
  const seconds = Math.round((performance.now() - begun) / 1000);
  keep(out, "scale", { time: new Date().toISOString(), seconds, machine, extent, ...report });
  return Object.keys(failures).every((name) => failures[name] === missing) ? 0 : 1;
}
