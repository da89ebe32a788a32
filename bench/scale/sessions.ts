/** What idle clients cost a node: sessions of the old era, and users of the modern one, who have no session. */
import { Agent } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { type Rig, startRig } from "../../test/cluster/rig/rig.ts";
import type { Era } from "../client/protocol.ts";
import { StreamableClient } from "../client/streamable.ts";
import { memoryOf } from "../processes.ts";
import { ECHO_STDIO } from "../subjects/subject.ts";

export interface SessionsSize {
  /** How many are there when memory is read, in rising order; what one costs is the slope between the first and the last. */
  readonly counts: readonly number[];
  readonly settleMs: number;
  readonly cluster: boolean;
}

export interface SessionsRow {
  readonly what: string;
  readonly points: readonly { readonly count: number; readonly anonMb: number }[];
  readonly mbPerThousand: number;
  /** How many could be opened in a second, one after the other in a few lines. */
  readonly openedPerSecond: number;
}

const OPENED_AT_ONCE = 25;
const PLENTY = 10_000_000;

export async function measureSessions(size: SessionsSize): Promise<readonly SessionsRow[]> {
  const { counts, settleMs, cluster } = size;
  const most = Math.max(...counts);
  const tokens = Array.from({ length: most }, (_, index) => ({ token: tokenOf(index), user: `user-${index}` }));
  const start = (auth: object): Promise<Rig> =>
    startRig({
      nodes: 1,
      ...(cluster ? {} : { cluster: false }),
      servers: (dir) => ({ pipe: { command: process.execPath, args: [ECHO_STDIO, `--name=${dir}`] } }),
      config: { http: { ...auth, limits: { sessions: PLENTY, connections: PLENTY, streams: PLENTY } } },
    });
  return [
    await measure("sessions, old era", "legacy", () => start({}), counts, settleMs, false),
    await measure("users, modern era", "modern", () => start({ auth: { tokens } }), counts, settleMs, true),
  ];
}

async function measure(
  what: string,
  era: Era,
  start: () => Promise<Rig>,
  counts: readonly number[],
  settleMs: number,
  withToken: boolean,
): Promise<SessionsRow> {
  const rig = await start();
  // Connections are not kept: an idle client has none.
  const agent = new Agent({ keepAlive: false });
  try {
    const url = `${rig.node(0).url}/mcp`;
    const open = async (index: number): Promise<void> => {
      const token = withToken ? { token: tokenOf(index) } : {};
      const client = await StreamableClient.open({ url, era, agent, ...token });
      const { error } = await client.request("tools/list");
      if (error !== undefined) throw new Error(error.message);
    };
    await open(0);
    const points: { count: number; anonMb: number }[] = [];
    let [opened, seconds] = [1, 0];
    for (const count of counts) {
      const begun = performance.now();
      for (; opened < count; opened += Math.min(OPENED_AT_ONCE, count - opened)) {
        const some = Math.min(OPENED_AT_ONCE, count - opened);
        await Promise.all(Array.from({ length: some }, (_, index) => open(opened + index)));
      }
      seconds += (performance.now() - begun) / 1000;
      await sleep(settleMs);
      points.push({ count, anonMb: memoryOf(rig.node(0).pid).anonMb });
    }
    const [first, last] = [points[0], points.at(-1)];
    if (first === undefined || last === undefined) throw new Error("There is nothing to measure.");
    return {
      what,
      points,
      mbPerThousand: ((last.anonMb - first.anonMb) / Math.max(1, last.count - first.count)) * 1000,
      openedPerSecond: (opened - 1) / seconds,
    };
  } finally {
    agent.destroy();
    await rig.stop();
  }
}

function tokenOf(index: number): string {
  return `bench-token-${index}-0123456789abcdef`;
}
