/** The rig's own parts: a rig that hides faults would prove nothing. */
import { createServer, type Server } from "node:http";
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { StreamableClient } from "../../bench/client/streamable.ts";
import { isAlive } from "../support/processes.ts";
import { Balancer } from "./rig/balancer.ts";
import { countingServer, lives, overlaps, written } from "./rig/counting.ts";
import { Link } from "./rig/link.ts";
import { Load, verdictOn } from "./rig/load.ts";
import { type Rig, startRig } from "./rig/rig.ts";

const cleanUps: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).toReversed()) await cleanUp();
});

function portOf(server: { address(): unknown }): number {
  // A TCP server that listens has such an address.
  return (server.address() as AddressInfo).port;
}

describe("a link", () => {
  async function echoed(): Promise<{ link: Link; open(): Promise<Socket> }> {
    const server = createTcpServer((socket) => socket.on("error", () => {}).pipe(socket));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const link = await Link.open(() => ({ port: portOf(server), host: "127.0.0.1" }));
    cleanUps.push(
      () => new Promise((resolve) => server.close(resolve)),
      () => link.close(),
    );
    return {
      link,
      open: () =>
        new Promise((resolve, reject) => {
          const socket = connect(link.port, "127.0.0.1", () => resolve(socket)).on("error", reject);
          cleanUps.push(async () => socket.destroy());
        }),
    };
  }
  const heard = (socket: Socket): Promise<string> =>
    new Promise((resolve) => {
      socket.once("data", (chunk) => resolve(String(chunk)));
      socket.once("close", () => resolve("(closed)"));
    });

  it("carries, is silent without closing, and carries what was kept back", async () => {
    const { link, open } = await echoed();
    const socket = await open();
    socket.write("one");
    expect(await heard(socket)).toBe("one");
    link.state = "silent";
    socket.write("two");
    const later = heard(socket);
    expect(await Promise.race([later, sleep(150, "nothing")])).toBe("nothing");
    const other = await open();
    other.write("three");
    expect(await Promise.race([heard(other), sleep(150, "nothing")])).toBe("nothing");
    link.state = "open";
    expect(await later).toBe("two");
  });

  it("drops what is open when it is cut, and takes connections again afterwards", async () => {
    const { link, open } = await echoed();
    const socket = await open();
    const end = heard(socket);
    link.state = "cut";
    expect(await end).toBe("(closed)");
    expect(await heard(await open())).toBe("(closed)");
    link.state = "open";
    const again = await open();
    again.write("back");
    expect(await heard(again)).toBe("back");
  });
});

describe("the balancer", () => {
  async function backend(name: string, handle: Parameters<typeof createServer>[1] & {}): Promise<Server> {
    const server = createServer((request, response) => {
      if (request.url === "/readyz") response.end("ready");
      else handle(request, response);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    cleanUps.push(async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    });
    return Object.assign(server, { name });
  }

  it("takes turns, and passes over who refuses the connection", async () => {
    const [one, two] = [
      await backend("one", (_, response) => void response.end("one")),
      await backend("two", (_, response) => void response.end("two")),
    ];
    const backends = [
      { name: "one", port: portOf(one) },
      { name: "two", port: portOf(two) },
    ];
    const balancer = await Balancer.open(backends);
    cleanUps.push(() => balancer.close());
    const ask = async (): Promise<string> => (await fetch(`${balancer.url}/x`)).text();
    expect(new Set([await ask(), await ask()])).toEqual(new Set(["one", "two"]));
    one.closeAllConnections();
    await new Promise((resolve) => one.close(resolve));
    expect([await ask(), await ask(), await ask()]).toEqual(["two", "two", "two"]);
  });

  it("sends a request once, and says so when the node breaks off", async () => {
    let seen = 0;
    const broken = (): Parameters<typeof backend>[1] => (request) => {
      seen += 1;
      request.socket.destroy();
    };
    const ports = [portOf(await backend("one", broken())), portOf(await backend("two", broken()))];
    const balancer = await Balancer.open(ports.map((port) => ({ name: String(port), port })));
    cleanUps.push(() => balancer.close());
    const answer = await fetch(`${balancer.url}/x`, { method: "POST", body: "once" });
    expect([answer.status, seen]).toEqual([502, 1]);
  });

  it("passes a request on if it is to, but only one whose connection was reset without a response", async () => {
    const seen: string[] = [];
    const server = (name: string, end: (socket: Socket) => void): Promise<Server> =>
      backend(name, (request, response) => {
        seen.push(name);
        if (request.method === "POST") end(request.socket);
        else response.end(name);
      });
    const reset = (socket: Socket): void => void socket.resetAndDestroy();
    const nodes = [await server("one", reset), await server("two", reset)].map((each) => ({
      name: "",
      port: portOf(each),
    }));
    const balancer = await Balancer.open(nodes, { passesOn: true });
    cleanUps.push(() => balancer.close());
    const post = async (): Promise<number> => (await fetch(balancer.url, { method: "POST", body: "x" })).status;
    seen.length = 0;
    expect([await post(), new Set(seen), balancer.resets]).toEqual([503, new Set(["one", "two"]), 2]);
    const closing = await server("three", (socket) => socket.end());
    const other = await Balancer.open([{ name: "three", port: portOf(closing) }], { passesOn: true });
    cleanUps.push(() => other.close());
    expect((await fetch(other.url, { method: "POST", body: "x" })).status).toBe(502);
    expect(other.resets).toBe(0);
  });

  it("streams both ways, and lets the node know that the client has gone", async () => {
    let gone = (): void => {};
    const wentAway = new Promise<void>((resolve) => (gone = resolve));
    const server = await backend("one", (request, response) => {
      request.on("data", (chunk) => response.write(chunk));
      response.on("close", gone);
    });
    const balancer = await Balancer.open([{ name: "one", port: portOf(server) }]);
    cleanUps.push(() => balancer.close());
    const leave = new AbortController();
    const body = new ReadableStream({
      start: (controller) => controller.enqueue(new TextEncoder().encode("first")),
    });
    const answer = await fetch(`${balancer.url}/x`, { method: "POST", body, duplex: "half", signal: leave.signal });
    const { value } = (await answer.body?.getReader().read()) ?? {};
    expect(new TextDecoder().decode(value)).toBe("first");
    leave.abort();
    await wentAway;
  });
});

describe("nodes that know nothing of each other", () => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await startRig({ nodes: 2, cluster: false, servers: (dir) => ({ count: countingServer(dir, "count") }) });
  });
  afterAll(() => rig.stop());

  it("[scale-10b] two processes of one server, a lost and a doubled write are noticed", async () => {
    const load = new Load({ url: `${rig.url}/mcp`, clients: { legacy: 0, modern: 2 }, tools: ["count__append"] });
    await load.progress(10);
    await load.stop();
    await expect.poll(() => overlaps(rig.dir)).toHaveLength(1);
    expect(verdictOn(load, rig.dir)).toEqual({ answered: load.attempts.length, lost: [], doubled: [], denied: [] });
    const [first] = load.acknowledged;
    load.attempts.push({ id: "never", era: "modern", begun: 0, ended: 0, pid: 1, failure: undefined });
    const client = await StreamableClient.open({ url: `${rig.url}/mcp`, era: "modern" });
    await client.request("tools/call", { name: "count__append", arguments: { id: first?.id } });
    await client.close();
    expect(verdictOn(load, rig.dir)).toMatchObject({ lost: ["never"], doubled: [first?.id] });
  });

  it("[scale-10b] a killed node leaves no server behind, and comes back", async () => {
    const node = rig.node(1);
    const servers = node.children();
    expect(servers).not.toEqual([]);
    await node.kill();
    await expect.poll(() => servers.filter(isAlive)).toEqual([]);
    await node.start();
    await expect.poll(() => rig.balancer.isReady(node.name)).toBe(true);
    expect(written(rig.dir).length).toBeGreaterThan(0);
    expect(lives(rig.dir).filter(({ what }) => what === "start")).toHaveLength(3);
  });

  it("[scale-10b] whatever outlives its node is found and ended", async () => {
    const stubborn = await startRig({
      nodes: 1,
      cluster: false,
      servers: (dir) => {
        const entry = countingServer(dir, "stay");
        return { stay: { ...entry, args: [...(entry.args ?? []), "--stay"] } };
      },
    });
    await expect.poll(() => stubborn.node(0).children()).toHaveLength(1);
    const [server = 0] = stubborn.node(0).children();
    await expect.poll(() => lives(stubborn.dir)).toHaveLength(1);
    await stubborn.node(0).kill();
    expect(await stubborn.stop(200)).toEqual([server]);
    await expect.poll(() => isAlive(server)).toBe(false);
  });
});
