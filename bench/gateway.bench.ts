/** The gateway against the floor below it and the peers beside it, all in one run. */
import { judge, type Aim } from "./aims.ts";
import { measureBeside, measureLargeResult, measureList } from "./measures/answers.ts";
import { measureCalls } from "./measures/calls.ts";
import { measureCluster } from "./measures/cluster.ts";
import type { Figures } from "./measures/figures.ts";
import { measureScale, type ScaleFigures, type Size } from "./measures/scale.ts";
import { measureMemory, measureStart } from "./measures/start.ts";
import type { Durations } from "./measures/sustained.ts";
import type { BenchOptions, Extent, Measure } from "./options.ts";
import { directHttp, relay } from "./subjects/floor.ts";
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
  /** One at a time and many at once, each this long. */
  readonly calls: Durations;
  /** Each kind of a large answer. */
  readonly answers: Durations;
  readonly tools: number;
  readonly startRounds: number;
  /** Until memory is measured for the first time, and of sizes of the scale curve. */
  readonly startedMs: number;
  /** Until a process that is not called has given back what its start needed. */
  readonly idleMs: number;
  readonly servers: readonly number[];
  readonly memoryServers: number;
  readonly sizes: Readonly<Record<keyof Size, readonly number[]>>;
}

const COUNTS: Readonly<Record<Extent, Counts>> = {
  full: {
    calls: { seconds: 10, bareSeconds: 1, warmupSeconds: 4, quietMs: 500 },
    answers: { seconds: 3, bareSeconds: 0.7, warmupSeconds: 0.7, quietMs: 500 },
    tools: 1000,
    startRounds: 3,
    startedMs: 3000,
    idleMs: 20_000,
    servers: [1, 10, 30],
    memoryServers: 10,
    sizes: { sessions: [0, 100, 1000, 5000], servers: [1, 10, 100], tools: [100, 1000, 10_000] },
  },
  quick: {
    calls: { seconds: 3, bareSeconds: 0.5, warmupSeconds: 4, quietMs: 500 },
    answers: { seconds: 1, bareSeconds: 0.5, warmupSeconds: 1, quietMs: 500 },
    tools: 1000,
    startRounds: 1,
    startedMs: 2000,
    idleMs: 20_000,
    servers: [1, 10],
    memoryServers: 10,
    sizes: { sessions: [0, 1000], servers: [1, 10], tools: [100, 1000] },
  },
  smoke: {
    calls: { seconds: 0.05, bareSeconds: 0.02, warmupSeconds: 0, quietMs: 30 },
    answers: { seconds: 0.02, bareSeconds: 0.02, warmupSeconds: 0, quietMs: 30 },
    tools: 10,
    startRounds: 1,
    startedMs: 10,
    idleMs: 20,
    servers: [1, 2],
    memoryServers: 2,
    sizes: { sessions: [0, 2], servers: [1, 2], tools: [2, 10] },
  },
};

const MIB = 1024 * 1024;
type Say = (line: string) => void;

export async function measureGateway(options: BenchOptions, say: Say): Promise<GatewayReport> {
  const counts = COUNTS[options.extent];
  const peers = options.peers ? installPeers(PEER_PACKAGES, say) : { installed: [], missing: {} };
  const others = [
    ...(options.versus === undefined ? [] : [otherToolcrib(options.versus)]),
    ...peerSubjects(peers.installed),
  ];
  const figures: Figures[] = [];
  const scale: ScaleFigures[] = [];
  for (const [measure, parts] of Object.entries(steps(counts, others, say))) {
    // The keys of `steps` are the measures.
    if (!options.measures.includes(measure as Measure)) continue;
    for (const [title, run] of parts) {
      say(`${title} …`);
      const done = await run();
      if ("dimension" in done) scale.push(done);
      else figures.push(...done);
    }
  }
  const leftOut = options.peers ? { ...NOT_MEASURED, ...peers.missing } : { peers: "--no-peers" };
  return { figures, scale, aims: judge(figures, scale), leftOut };
}

type Part = readonly [title: string, run: () => Promise<readonly Figures[] | ScaleFigures>];

function steps(counts: Counts, others: readonly Subject[], say: Say): Record<Measure, Part[]> {
  // The bare server runs beside each of them.
  const gateways = [relay, toolcrib(), ...others];
  const withFloor = [directHttp, ...gateways];
  const ownAndRelay = gateways.filter(({ kind }) => kind !== "peer");
  const dimensions = ["sessions", "servers", "tools"] as const;
  return {
    calls: [
      // The modern era is for calls to one kind of server only: elsewhere it would show the same.
      ["calls, stdio server", () => calls("stdio", [relay, toolcrib(), toolcrib("modern"), ...others])],
      ["calls, http server", () => calls("http", gateways)],
    ],
    list: [["list", () => measureList(gateways, counts.tools, counts.answers, say)]],
    large: [
      ["1 MiB results", () => measureLargeResult(gateways, MIB, counts.answers, say)],
      ["small calls beside 1 MiB results", () => measureBeside(ownAndRelay, MIB, counts.calls, say)],
    ],
    start: counts.servers.map((servers) => [
      `start with ${servers} servers`,
      () => measureStart(withFloor, servers, counts.startRounds),
    ]),
    memory: [["memory", () => measureMemory(withFloor, counts.memoryServers, counts)]],
    scale: dimensions.map((dimension) => [
      `scale: ${dimension}`,
      () => measureScale(dimension, sizesOf(dimension, counts.sizes[dimension]), { ...counts.calls, ...counts }, say),
    ]),
    cluster: [["cluster", () => measureCluster(counts.calls, say)]],
  };

  function calls(upstream: "stdio" | "http", subjects: readonly Subject[]): Promise<Figures[]> {
    return measureCalls(subjects, { upstream, servers: 1, tools: 1 }, counts.calls, say);
  }
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
