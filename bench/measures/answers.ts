/** What large answers cost: a list of many tools, and a result of 1 MiB. */
import { listTools } from "../client/connect.ts";
import { directHttp } from "../subjects/floor.ts";
import type { Subject } from "../subjects/subject.ts";
import { type Figures, figuresOf } from "./figures.ts";
import { type Durations, type Entrant, type Pattern, samplesOf, type Sustained, underLoad } from "./sustained.ts";

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
  const done = await underLoad({ subjects, load: () => load, patterns, durations, say });
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
  const done = await underLoad({ subjects, load: () => load, patterns, durations, say });
  return KINDS.map((kind) =>
    timeFigures(`large-${kind}-stdio`, `A result of ${bytes / 1024} KiB (${kind}), stdio server`, kind, subjects, done),
  );
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
