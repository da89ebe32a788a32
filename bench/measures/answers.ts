/** What large answers cost: a list of many tools, and a result of 1 MiB; and what they cost other sessions. */
import { listTools } from "../client/connect.ts";
import { startSecondSession } from "../client/second-session.ts";
import { quantile } from "../stats.ts";
import { directHttp } from "../subjects/floor.ts";
import type { Subject } from "../subjects/subject.ts";
import { PATTERNS } from "./calls.ts";
import { type Figures, figuresOf, type Sampled } from "./figures.ts";
import {
  close,
  drive,
  type Durations,
  type Entrant,
  open,
  type Pattern,
  samplesOf,
  type Sustained,
  underLoad,
  warmUp,
} from "./sustained.ts";

export async function measureList(
  subjects: readonly Subject[],
  tools: number,
  durations: Durations,
  say: (line: string) => void,
): Promise<Figures[]> {
  const once = async ({ client }: Entrant): Promise<void> => {
    const names = await listTools(client);
    if (names.length < tools) throw new Error(`only ${names.length} of ${tools} tools are listed`);
  };
  const load = { upstream: "stdio", servers: 1, tools } as const;
  const patterns = { list: { inFlight: 1, once } };
  const done = await underLoad({ subjects, load, patterns, durations, say });
  const title = `tools/list with ${tools.toLocaleString("en")} tools, stdio server`;
  return [timeFigures("list-stdio", title, "list", subjects, done)];
}

/** Text without any words costs a scanner something else than prose does. */
export const KINDS = ["x", "prose", "json"] as const;
type Kind = (typeof KINDS)[number];

export async function measureLargeResult(
  subjects: readonly Subject[],
  bytes: number,
  durations: Durations,
  say: (line: string) => void,
): Promise<Figures[]> {
  const load = { upstream: "stdio", servers: 1, tools: 1 } as const;
  const pattern = (kind: Kind): Pattern => ({ inFlight: 1, once: (entrant) => largeResult(entrant, bytes, kind) });
  const patterns = { x: pattern("x"), prose: pattern("prose"), json: pattern("json") };
  const done = await underLoad({ subjects, load, patterns, durations, say });
  return KINDS.map((kind) =>
    timeFigures(`large-${kind}-stdio`, `A result of ${bytes / 1024} KiB (${kind}), stdio server`, kind, subjects, done),
  );
}

/** In turns, so that what slows the machine for a while slows both sides of a ratio. */
const ROUNDS = 5;

/** Small calls of one session, alone and while another session gets large results from another server. */
export async function measureBeside(
  subjects: readonly Subject[],
  bytes: number,
  durations: Durations,
  say: (line: string) => void,
): Promise<Figures[]> {
  const samples = new Map<string, Sampled>();
  const failures: Record<string, string> = {};
  for (const subject of subjects) {
    say(`  ${subject.name}`);
    try {
      samples.set(subject.name, { values: await besideRatios(subject, bytes, durations) });
    } catch (error) {
      failures[subject.name] = error instanceof Error ? error.message : String(error);
    }
  }
  const title = `p99 of tools/call one at a time, while another session gets ${bytes / 1024} KiB of prose again and again`;
  return [figuresOf({ measure: "beside-stdio", title, unit: "× alone", better: "lower", subjects, samples, failures })];
}

async function besideRatios(subject: Subject, bytes: number, durations: Durations): Promise<number[]> {
  await using closing = new AsyncDisposableStack();
  const entrant = closing.adopt(
    await open(subject, { upstream: "stdio", servers: 1, tools: 1, second: true }, []),
    close,
  );
  // Its own server is listed first; the second one may not be there yet.
  const small = { ...entrant, tools: entrant.tools.filter((name) => !name.includes("second")) };
  const args = { bytes, kind: "prose" };
  const p99 = async (): Promise<number> =>
    quantile((await drive(small, PATTERNS.sequential, durations.seconds / ROUNDS)).times.flat(), 0.99);
  const stopWarmUp = await startSecondSession(entrant.running, args);
  await warmUp(small, PATTERNS.sequential, { ...durations, quietMs: 0 });
  await stopWarmUp();
  const ratios: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const alone = await p99();
    const stop = await startSecondSession(entrant.running, args);
    const beside = await p99();
    await stop();
    ratios.push(beside / alone);
  }
  return ratios;
}

function timeFigures<Name extends string>(
  measure: string,
  title: string,
  name: Name,
  subjects: readonly Subject[],
  { phases, failures }: Sustained<Name>,
): Figures {
  return figuresOf({
    measure,
    title,
    unit: "µs",
    better: "lower",
    floor: directHttp.name,
    subjects: [directHttp, ...subjects],
    samples: samplesOf(phases, name, ({ windows }) => windows.map(({ p50Us }) => p50Us)),
    failures,
  });
}

async function largeResult({ client, tools }: Entrant, bytes: number, kind: string): Promise<void> {
  const params = { name: tools[0] ?? "", arguments: { bytes, kind } };
  const { result, error } = await client.request("tools/call", params);
  // What the echo server answers.
  const text = (result?.["content"] as readonly { text?: string }[] | undefined)?.[0]?.text;
  if (text?.length !== bytes)
    throw new Error(error?.message ?? `a text of ${text?.length} instead of ${bytes} characters`);
}
