/** Clients of both eras at a cluster behind a balancer without stickiness: what they hear is what they hear of one hub. */
import { StreamableHTTPClientTransport as NewHttp } from "@modelcontextprotocol/client";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StreamableHTTPClientTransport as OldHttp } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { listTools } from "../../bench/client/connect.ts";
import { StreamableClient } from "../../bench/client/streamable.ts";
import type { Era } from "../../src/model/protocol.ts";
import { type Channel, HttpChannel } from "../gateway/channels.ts";
import { ERAS } from "../gateway/doors.ts";
import { ASKED, judge, type Judged, newClient, oldClient } from "../gateway/judged-client.ts";
import { RawClient } from "../gateway/raw-client.ts";
import { comparable, transcribe, type Transcript } from "../gateway/transcript.ts";
import { directStdio, everyFieldStdio } from "../gateway/upstreams.ts";
import { everything } from "../support/servers.ts";
import { isFull } from "./full.ts";
import { countingServer, lives } from "./rig/counting.ts";
import { ownersOf } from "./rig/owner.ts";
import { missingForCluster, type Rig, startRig } from "./rig/rig.ts";

const missing = missingForCluster();
if (missing !== undefined) console.warn(`No cluster is tested: ${missing}.`);

/** Over stdio nothing says which call a server's own notification belongs to, and a modern client has no other place for it. */
const GAP = "a notification of its own";
const CAPABILITIES = { sampling: { tools: {} }, roots: {}, "x-capability": { a: 1 } };

async function transcriptOf(channel: Channel, era: Era, expected?: Transcript): Promise<Transcript> {
  const client = await RawClient.open(channel, era, { capabilities: CAPABILITIES });
  try {
    return await transcribe(client, expected);
  } finally {
    await client.close();
  }
}

/** The era of the every-field server: one in the core, both in full. */
describe.skipIf(missing !== undefined).each<Era>(isFull ? ERAS : ["legacy"])(
  "three nodes, a %s server",
  (serverEra) => {
    let rig: Rig;

    beforeAll(async () => {
      rig = await startRig({
        servers: (dir) => ({
          e: everything(),
          every: { ...everyFieldStdio(serverEra), toolPrefix: "" },
          count: countingServer(dir, "count"),
          many: countingServer(dir, "many", { replicas: 3 }),
        }),
      });
      await rig.whenReady();
    }, 120_000);

    afterAll(async () => {
      expect(await rig.stop(), "processes that outlived their nodes").toEqual([]);
    }, 60_000);

    it("[scale-05a] every node shows the same catalog", async () => {
      const listOf = async (url: string): Promise<unknown> => {
        const client = await StreamableClient.open({ url: `${url}/mcp`, era: "modern" });
        return listTools(client).finally(() => client.close());
      };
      const [first, ...others] = rig.nodes.map(({ url }) => url);
      const known = expect.arrayContaining(["count__append", "many__append", "e__echo"]);
      // A node that is ready may still be learning what a server that starts elsewhere has.
      await expect.poll(() => listOf(first ?? "")).toEqual(known);
      const list = await listOf(first ?? "");
      for (const other of others) await expect.poll(() => listOf(other)).toEqual(list);
    });

    it("[scale-06a] [scale-06c] a server runs once, one with replicas on so many nodes", async () => {
      expect(ownersOf(rig, "--name=count")).toHaveLength(1);
      await expect.poll(() => ownersOf(rig, "--name=many").length).toBe(3);
      expect(new Set(ownersOf(rig, "--name=many").map(({ node }) => node.name)).size).toBe(3);
      expect(lives(rig.dir).filter(({ what, server }) => what === "overlap" && server === "count")).toEqual([]);
    });

    it("[scale-06b] every node carries large results, progress and cancellation from wherever the server is", async () => {
      for (const [index, node] of rig.nodes.entries()) {
        const client = await RawClient.open(new HttpChannel(`${node.url}/mcp`), "modern");
        const big = await client.call("count__big", { bytes: 3_000_000 });
        // What the counting server answers.
        const [content] = (big.result?.["content"] ?? []) as { text: string }[];
        expect(content?.text.length, JSON.stringify(big).slice(0, 500)).toBe(3_000_000);
        await client.call("count__progress", { steps: 5 }, { progressToken: `p${index}` });
        expect(client.noticed("notifications/progress").map((step) => step?.["progress"])).toEqual([1, 2, 3, 4, 5]);
        const id = `slow${index}`;
        const slow = client.start("tools/call", { name: "count__slow", arguments: { id, ms: 20_000 } });
        slow.answer.catch(() => {});
        await new Promise((resolve) => setTimeout(resolve, 150));
        await client.cancel(slow.id);
        await expect.poll(() => lives(rig.dir).map(({ more }) => more)).toContain(id);
        await client.close();
      }
    }, 90_000);

    // The every-field server is too odd for clients that check what they read. With more than one, names are public.
    const at = (path: string): URL => new URL(`${rig.url}${path}?servers=e,local`);
    const CLIENTS: readonly (readonly [string, () => Promise<Judged>])[] = [
      ["SDK 1.x over Streamable HTTP", () => oldClient(new OldHttp(at("/mcp")))],
      ["SDK 1.x over SSE", () => oldClient(new SSEClientTransport(at("/sse")))],
      ["SDK 2.x, legacy", () => newClient(new NewHttp(at("/mcp")), "legacy")],
      ["SDK 2.x, modern", () => newClient(new NewHttp(at("/mcp")), { pin: "2026-07-28" })],
      ["SDK 2.x, by negotiation", () => newClient(new NewHttp(at("/mcp")), "auto")],
    ];

    it.each(CLIENTS)("[scale-10a] %s: lists, calls, reads, hears of progress and is asked", async (_name, connect) => {
      const client = await connect();
      try {
        await judge(client);
        expect(client.asked).toEqual(ASKED);
      } catch (error) {
        throw new Error(`${String(error)}\n${rig.logs()}`, { cause: error });
      } finally {
        await client.close();
      }
    });

    it.each(ERAS)("[scale-10a] to a %s client the server is what it is by itself", async (era) => {
      const expected = await transcriptOf(directStdio(era), era);
      if (era === "modern") expected.delete(GAP);
      const transcript = await transcriptOf(new HttpChannel(`${rig.url}/mcp?servers=every`), era, expected);
      const leeway = { eras: era !== serverEra };
      for (const label of expected.keys()) {
        expect.soft(comparable(transcript.get(label), leeway), label).toBe(comparable(expected.get(label), leeway));
      }
    });
  },
);
