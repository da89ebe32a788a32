/**
 * `npm run soak`: clients of both eras call through the gateway while servers are killed. At the end no request may be lost,
 * hung, doubled or answered with another's payload, every server must be back, and memory must be flat.
 */
import { existsSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { StreamableClient } from "../bench/client/streamable.ts";
import { listTools } from "../bench/client/connect.ts";
import { commandOf, openHandlesOf } from "../bench/processes.ts";
import { keepCalling } from "../bench/soak/caller.ts";
import { Fleet } from "../bench/soak/fleet.ts";
import { type Growth, MemoryWatch } from "../bench/soak/memory-watch.ts";
import { Random } from "../bench/soak/random.ts";
import { BAD, GOOD, Tally } from "../bench/soak/tally.ts";
import { scratch } from "../bench/subjects/subject.ts";
import { startToolcrib, type ToolcribRunning } from "../bench/subjects/toolcrib.ts";

/** Generous: a heap breathes. What leaks with every call is above it after a few minutes at the latest. */
const GROWTH_MB = 40;
const HANDLES = 25;
const LAST_CALLS_MS = 20_000;
const COME_BACK_MS = 30_000;

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "60" },
    clients: { type: "string", default: "24" },
    "kill-every": { type: "string", default: "700" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
  },
});
const seconds = Number(values.seconds);
const killEveryMs = Number(values["kill-every"]);
const seed = Number(values.seed);
const clients = Number(values.clients);

const random = new Random(seed);
const tally = new Tally();
const folder = scratch();
const fleet = await Fleet.start(folder.dir);
const gateway = await startToolcrib({ upstream: "stdio", servers: 0, tools: 0 }, [], { servers: fleet.entries() });
const problems: string[] = [];
try {
  console.log(`soak: ${seconds} s, ${clients} clients, ${fleet.ids.length} servers, seed ${seed}`);
  await soak();
} catch (error) {
  problems.push(error instanceof Error ? error.message : String(error));
  problems.push(`The gateway said: ${gateway.process?.output().slice(-1000) ?? ""}`);
} finally {
  await endOf(gateway);
  await fleet.stop();
}
countDoubleRuns();
folder.remove();
report();

async function soak(): Promise<void> {
  const pid = gateway.process?.pid ?? 0;
  const tools = await toolsOfAll();
  const handlesBefore = openHandlesOf(pid);
  const watch = new MemoryWatch(pid);
  const until = AbortSignal.timeout(seconds * 1000);
  const callers = Array.from({ length: clients }, (_, index) =>
    keepCalling({
      name: `c${index}`,
      url: gateway.url,
      era: index % 2 === 0 ? "legacy" : "modern",
      tools,
      tally,
      random: new Random(seed + index + 1),
      until,
    }),
  );
  const killing = killUntil(until, pid);
  const everybody = Promise.all(callers);
  // A caller that fails outright is told below; here it must only not go unhandled.
  everybody.catch(() => {});
  await killing;
  await Promise.race([everybody, sleep(LAST_CALLS_MS, undefined, { ref: false })]);
  tally.closeOpen();
  const growth = watch.stop();
  if (tally.of("hung") === 0) await everybody;
  await checkAllBack(tools);
  await sleep(1000);
  checkFlat(growth, handlesBefore, openHandlesOf(pid));
}

async function killUntil(until: AbortSignal, pid: number): Promise<void> {
  while (!until.aborted) {
    await sleep(killEveryMs * (0.5 + random.next()));
    if (!until.aborted) fleet.killOne(pid, random);
  }
}

/** One tool of each server, under its public name; waits until all are there. */
async function toolsOfAll(): Promise<string[]> {
  const deadline = performance.now() + COME_BACK_MS;
  for (;;) {
    if (gateway.process?.ended === true) throw new Error("The gateway ended.");
    const names = await StreamableClient.open({ url: gateway.url })
      .then(async (client) => {
        const listed = await listTools(client);
        await client.close();
        return listed;
      })
      .catch(() => []);
    const tools = names.filter((name) => name.includes("echo"));
    if (tools.length >= fleet.ids.length) return tools;
    if (performance.now() > deadline) throw new Error(`Only ${tools.length} of ${fleet.ids.length} servers came up.`);
    await sleep(50);
  }
}

/** After the last kill every server answers again. */
async function checkAllBack(tools: readonly string[]): Promise<void> {
  const client = await StreamableClient.open({ url: gateway.url, era: "modern" });
  for (const name of tools) {
    const deadline = performance.now() + COME_BACK_MS;
    let answer = await client.request("tools/call", { name, arguments: { text: "back" } });
    while (answer.error !== undefined && performance.now() < deadline) {
      await sleep(100);
      answer = await client.request("tools/call", { name, arguments: { text: "back" } });
    }
    const { error } = answer;
    if (error) problems.push(`${name} did not come back within ${COME_BACK_MS / 1000} s: ${error.message}`);
  }
  await client.close();
}

function checkFlat({ firstMb, lastMb, mbPerMinute, grownMb }: Growth, before: number, after: number): void {
  console.log(
    `memory: ${firstMb.toFixed(1)} MB → ${lastMb.toFixed(1)} MB in the second half (${mbPerMinute.toFixed(1)} MB a minute); ` +
      `open handles: ${before} → ${after}`,
  );
  if (grownMb > GROWTH_MB) problems.push(`Memory grew by ${grownMb.toFixed(1)} MB; ${GROWTH_MB} are allowed.`);
  if (after > before + HANDLES) problems.push(`There are ${after} open handles after ${before} at the beginning.`);
}

/** A call that has effects must reach its server once at most. */
function countDoubleRuns(): void {
  const seen = new Set<string>();
  const lines = existsSync(fleet.log) ? readFileSync(fleet.log, "utf8").split("\n") : [];
  for (const line of lines) {
    const [id = ""] = line.split(" ");
    if (!/^c\d+-\d+$/.test(id)) continue;
    if (seen.has(id)) tally.count("ran twice", id);
    seen.add(id);
  }
}

async function endOf({ process: started, stop }: ToolcribRunning): Promise<void> {
  const children = fleet.children(started?.pid ?? 0);
  await stop();
  const left = children.filter((pid) => commandOf(pid).includes(fleet.log));
  if (left.length > 0) problems.push(`${left.length} servers outlived the gateway.`);
}

function report(): void {
  const counts = [...GOOD, ...BAD].map((end) => `${end} ${tally.of(end)}`).join(", ");
  console.log(`${tally.begun} requests, ${fleet.kills} kills: ${counts}`);
  for (const example of tally.examples) console.log(`  ${example}`);
  if (tally.of("answered") === 0) problems.push("No request was answered.");
  for (const problem of problems) console.log(`problem: ${problem}`);
  const failed = tally.bad > 0 || problems.length > 0;
  console.log(failed ? `soak: failed (seed ${seed})` : "soak: passed");
  process.exitCode = failed ? 1 : 0;
}
