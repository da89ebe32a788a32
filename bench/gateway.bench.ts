/** The gateway against the floor below it and the peers beside it, all in one run. */
import { judge, type Aim } from "./aims.ts";
import { measureLargeResult, measureList } from "./measures/answers.ts";
import { measureCalls } from "./measures/calls.ts";
import type { Figures } from "./measures/figures.ts";
import { measureScale, type ScaleFigures, type Size } from "./measures/scale.ts";
import { measureMemory, measureStart } from "./measures/start.ts";
import type { BenchOptions, Extent, Measure } from "./options.ts";
import { directHttp, directPipe, relay } from "./subjects/floor.ts";
import { installPeers } from "./subjects/install-peers.ts";
import { NOT_MEASURED, PEER_PACKAGES, peerSubjects } from "./subjects/peers.ts";
import type { Subject } from "./subjects/subject.ts";
import { otherToolcrib, toolcrib } from "./subjects/toolcrib.ts";

export interface GatewayReport {
  readonly figures: readonly Figures[];
  readonly scale: readonly ScaleFigures[];
  readonly aims: readonly Aim[];
  /** Why a peer is not in the tables, by package. */
  readonly leftOut: Readonly<Record<string, string>>;
}

interface Counts {
  readonly rounds: number;
  readonly warmup: number;
  readonly calls: number;
  readonly callsAtOnce: number;
  readonly largeRounds: number;
  readonly tools: number;
  readonly startRounds: number;
  readonly idleMs: number;
  readonly servers: readonly number[];
  readonly memoryServers: number;
  readonly sizes: Readonly<Record<keyof Size, readonly number[]>>;
}

const COUNTS: Readonly<Record<Extent, Counts>> = {
  full: {
    rounds: 60,
    // A program with much code needs some thousand calls until it is compiled; a relay needs a few hundred.
    warmup: 20,
    calls: 100,
    callsAtOnce: 320,
    largeRounds: 25,
    tools: 1000,
    startRounds: 5,
    idleMs: 10_000,
    servers: [1, 10, 30],
    memoryServers: 10,
    sizes: { sessions: [0, 100, 1000], servers: [1, 10, 100], tools: [100, 1000, 10_000] },
  },
  quick: {
    rounds: 12,
    warmup: 10,
    calls: 60,
    callsAtOnce: 192,
    largeRounds: 5,
    tools: 1000,
    startRounds: 1,
    idleMs: 2000,
    servers: [1, 10],
    memoryServers: 10,
    sizes: { sessions: [0, 100, 1000], servers: [1, 10], tools: [100, 1000] },
  },
  smoke: {
    rounds: 1,
    warmup: 0,
    calls: 3,
    callsAtOnce: 32,
    largeRounds: 1,
    tools: 10,
    startRounds: 1,
    idleMs: 10,
    servers: [1, 2],
    memoryServers: 2,
    sizes: { sessions: [0, 2], servers: [1, 2], tools: [2, 10] },
  },
};

const MIB = 1024 * 1024;

export async function measureGateway(options: BenchOptions, say: (line: string) => void): Promise<GatewayReport> {
  const counts = COUNTS[options.extent];
  const peers = options.peers ? installPeers(PEER_PACKAGES, say) : { installed: [], missing: {} };
  const others = [
    ...(options.versus === undefined ? [] : [otherToolcrib(options.versus)]),
    ...peerSubjects(peers.installed),
  ];
  const gateways = [directHttp, relay, toolcrib(), ...others];
  // The modern era and the bare pipe are for calls only: elsewhere they would show the same.
  const forCalls = [directPipe, directHttp, relay, toolcrib(), toolcrib("modern"), ...others];
  const figures: Figures[] = [];
  const scale: ScaleFigures[] = [];

  for (const [measure, run] of Object.entries(steps(counts, gateways, forCalls))) {
    // The keys of `steps` are the measures.
    if (!options.measures.includes(measure as Measure)) continue;
    for (const part of run) {
      const done = await part(say);
      if ("dimension" in done) scale.push(done);
      else figures.push(...done.figures);
    }
  }
  const leftOut = options.peers ? { ...NOT_MEASURED, ...peers.missing } : { peers: "--no-peers" };
  return { figures, scale, aims: judge(figures, scale), leftOut };
}

type Part = (say: (line: string) => void) => Promise<{ readonly figures: readonly Figures[] } | ScaleFigures>;

function steps(counts: Counts, gateways: readonly Subject[], forCalls: readonly Subject[]): Record<Measure, Part[]> {
  const large = { rounds: counts.largeRounds, warmup: Math.ceil(counts.largeRounds / 3), calls: 2 };
  const upstreams = ["stdio", "http"] as const;
  const figures =
    (what: string, run: () => Promise<Figures[]>): Part =>
    async (say) => {
      say(`${what} …`);
      return { figures: await run() };
    };
  return {
    calls: upstreams.map((upstream) =>
      figures(`calls, ${upstream} server`, () => measureCalls(forCalls, { upstream, servers: 1, tools: 1 }, counts)),
    ),
    list: [figures("list", () => measureList(gateways, "stdio", counts.tools, large))],
    large: upstreams.map((upstream) =>
      figures(`1 MiB results, ${upstream} server`, () => measureLargeResult(gateways, upstream, MIB, large)),
    ),
    start: counts.servers.map((servers) =>
      figures(`start with ${servers} servers`, () => measureStart(gateways, servers, counts.startRounds)),
    ),
    memory: [figures("memory", () => measureMemory(gateways, counts.memoryServers, counts.idleMs))],
    scale: (["sessions", "servers", "tools"] as const).map((dimension) => (say) => {
      say(`scale: ${dimension} …`);
      const rounds = { rounds: Math.ceil(counts.rounds / 2), warmup: counts.warmup, idleMs: counts.idleMs };
      return measureScale(dimension, sizesOf(dimension, counts.sizes[dimension]), { ...counts, ...rounds });
    }),
  };
}

/** Sizes that differ in one thing only. */
function sizesOf(dimension: keyof Size, values: readonly number[]): Size[] {
  const most = Math.max(...values);
  return values.map((value) => {
    if (dimension === "sessions") return { sessions: value, servers: 1, tools: 1 };
    // As many tools in all, whatever the number of servers.
    if (dimension === "servers") return { sessions: 0, servers: value, tools: most };
    return { sessions: 0, servers: 1, tools: value };
  });
}
