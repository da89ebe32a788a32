import { describe, expect, expectTypeOf, it, onTestFinished } from "vitest";
import { WebSocket } from "ws";
import { type LiveConnection, type LiveOptions, ToolcribApiError, ToolcribClient } from "../../src/api-client/index.ts";
import { reconnectDelay } from "../../src/api-client/hub-socket.ts";
import type { HubEvent } from "../../src/contract/websocket.ts";
import { ToolcribError } from "../../src/model/errors.ts";
import { BOSS, livePlace, type LivePlace, USER } from "../doors/http/live/live-setup.ts";
import { FakeClock } from "../support/fake-clock.ts";

interface Page {
  readonly live: LiveConnection;
  readonly events: HubEvent[];
  readonly statuses: string[];
  readonly missed: object[];
  readonly sockets: WebSocket[];
}

/** A page with a socket that a test can break, and time that it moves. */
function page(scene: Pick<LivePlace, "url">, given: LiveOptions = {}, token = BOSS): Page {
  const sockets: WebSocket[] = [];
  class Kept extends WebSocket {
    constructor(address: string, protocols: string[]) {
      super(address, protocols);
      sockets.push(this);
    }
  }
  const [events, statuses, missed]: [HubEvent[], string[], object[]] = [[], [], []];
  const live = new ToolcribClient({ url: scene.url, token, WebSocket: Kept }).live({
    onEvent: (event) => events.push(event),
    onStatus: (status) => statuses.push(status),
    onResync: (lost) => missed.push(lost),
    ...given,
  });
  onTestFinished(() => live.close());
  return { live, events, statuses, missed, sockets };
}

async function isOpen({ live }: Page): Promise<void> {
  await expect.poll(() => live.status).toBe("open");
}

describe("[oper-06a] the client over the WebSocket", () => {
  it("runs commands with the WebSocket that Node and browsers have", async () => {
    const scene = await livePlace();
    scene.play = ({ input }) => ({ servers: [], total: 0, given: input });
    const live = new ToolcribClient({ url: scene.url, token: USER }).live();
    onTestFinished(() => live.close());
    const [byName, byOperation] = await Promise.all([
      live.command("mcp.listServers", { q: "x" }),
      live.command("listServers", { q: "y" }),
    ]);
    expect([byName, byOperation]).toEqual([
      { servers: [], total: 0, given: { q: "x", limit: 1000 } },
      { servers: [], total: 0, given: { q: "y" } },
    ]);
    expect(scene.hub.opened.map(({ user }) => user)).toEqual(["ann"]);
    expectTypeOf(byName.total).toEqualTypeOf<number>();
    expectTypeOf(live.command<"skills.importDirectory">)
      .parameter(1)
      .toExtend<{ readonly dirPath: string }>();
  });

  it("hands out errors, progress, and gives up when told to", async () => {
    const scene = await livePlace();
    const { live } = page(scene);
    scene.play = () => {
      throw new ToolcribError("denied", "No.", { hint: "Ask." });
    };
    const failure = await live.command("me", {}).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(ToolcribApiError);
    expect(failure).toMatchObject({ code: "denied", message: "No.", hint: "Ask." });
    scene.play = async ({ context: { onProgress, signal } }) => {
      onProgress?.({ progress: 1 });
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
    };
    const giveUp = new AbortController();
    const onProgress = (): void => giveUp.abort();
    const given = live.command("mcp.callTool", { toolName: "x" }, { onProgress, signal: giveUp.signal });
    await expect(given).rejects.toMatchObject({ code: "cancelled" });
    await expect.poll(() => scene.asked.at(-1)?.context.signal.aborted).toBe(true);
    await expect(live.command("me", {}, { signal: giveUp.signal })).rejects.toMatchObject({ code: "cancelled" });
    scene.play = () => ({ user: "boss" });
    expect(await live.command("me", {})).toEqual({ user: "boss" });
  });

  it("[oper-05c] [oper-10a] comes back after a loss and gets what it missed, once", async () => {
    const scene = await livePlace();
    const clock = new FakeClock();
    const here = page(scene, { after: (ms, task) => clock.after(ms, task) });
    await isOpen(here);
    scene.hub.emit("warning", { message: "one" });
    await expect.poll(() => here.events.length).toBe(1);
    scene.play = () => new Promise(() => {});
    const unanswered = here.live.command("mcp.addServer", { config: {} });
    await expect.poll(() => scene.asked.length).toBe(1);
    here.sockets[0]?.terminate();
    await expect(unanswered).rejects.toMatchObject({
      code: "server_unavailable",
      hint: expect.stringMatching(/may or may not have run/) as string,
    });
    expect(here.live.status).toBe("lost");
    await expect(here.live.command("me", {})).rejects.toMatchObject({ code: "server_unavailable" });
    scene.hub.emit("warning", { message: "two" });
    scene.hub.emit("warning", { message: "three" });
    await clock.advance(1000);
    await isOpen(here);
    scene.hub.emit("warning", { message: "four" });
    await expect.poll(() => here.events.length).toBe(4);
    expect(here.events.map(({ seq }) => seq)).toEqual([1, 2, 3, 4]);
    expect([here.statuses, here.missed]).toEqual([["open", "lost", "open"], []]);
  });

  it("says when what it missed is no longer known, as after a restart of the hub", async () => {
    const first = await livePlace();
    const second = await livePlace();
    const clock = new FakeClock();
    let { url } = first;
    const sockets: WebSocket[] = [];
    class Moved extends WebSocket {
      constructor(address: string, protocols: string[]) {
        super(address.replace(first.url.replace("http", "ws"), url.replace("http", "ws")), protocols);
        sockets.push(this);
      }
    }
    const missed: object[] = [];
    const live = new ToolcribClient({ url, token: BOSS, WebSocket: Moved }).live({
      onResync: (lost) => missed.push(lost),
      after: (ms, task) => clock.after(ms, task),
    });
    onTestFinished(() => live.close());
    await expect.poll(() => live.status).toBe("open");
    for (let count = 0; count < 3; count++) second.hub.emit("warning", { message: "x" });
    ({ url } = second);
    sockets[0]?.terminate();
    await expect.poll(() => live.status).toBe("lost");
    await clock.advance(1000);
    await expect.poll(() => missed).toEqual([{ from: 0, to: 3 }]);
    // From now on the numbers are those of the new run.
    sockets[1]?.terminate();
    await expect.poll(() => live.status).toBe("lost");
    await clock.advance(1000);
    await expect.poll(() => live.status).toBe("open");
    expect(new URL(sockets[2]?.url ?? "").search).toBe(`?after=3&epoch=${second.feed.epoch}&client=toolcrib-client`);
    expect(missed).toHaveLength(1);
  });

  it("notices a connection that is dead, and learns numbers of events that are for others", async () => {
    const scene = await livePlace();
    const clock = new FakeClock();
    const here = page(scene, { events: ["mcp.*"], after: (ms, task) => clock.after(ms, task) });
    await isOpen(here);
    scene.hub.emit("warning", { message: "for others" });
    await clock.advance(25_000);
    await expect.poll(() => clock.pending).toBe(1);
    here.sockets[0]?.terminate();
    await expect.poll(() => here.live.status).toBe("lost");
    await clock.advance(1000);
    await isOpen(here);
    expect(here.sockets[1]?.url).toContain("after=1&");
    expect(here.sockets[1]?.url).toContain("events=mcp.*");
    here.sockets[1]?.pause();
    await clock.advance(50_000);
    expect(here.statuses.slice(0, 4)).toEqual(["open", "lost", "open", "lost"]);
  });

  it("tries on while nobody is there, and stops when it is closed", async () => {
    const clock = new FakeClock();
    const here = page({ url: "http://127.0.0.1:1" }, { after: (ms, task) => clock.after(ms, task) });
    const waiting = here.live.command("me", {});
    const notSent = { code: "server_unavailable", message: expect.stringContaining("was not sent") as string };
    await expect(waiting).rejects.toMatchObject(notSent);
    for (let attempt = 1; attempt < 4; attempt++) {
      await expect.poll(() => here.sockets.at(-1)?.readyState).toBe(WebSocket.CLOSED);
      // Nobody said why: the next attempt is set.
      await expect.poll(() => clock.pending).toBe(1);
      await clock.advance(20_000);
      await expect.poll(() => here.sockets.length).toBeGreaterThan(attempt);
    }
    expect(here.statuses).toEqual(["lost"]);
    here.live.close();
    here.live.close();
    const { length } = here.sockets;
    await clock.advance(100_000);
    expect([here.sockets.length, here.statuses, clock.pending]).toEqual([length, ["lost", "closed"], 0]);
    await expect(here.live.command("me", {})).rejects.toMatchObject({ code: "server_unavailable" });
  });

  it("says that its token is refused, and tries again only when it is told to", async () => {
    const scene = await livePlace();
    const clock = new FakeClock();
    const refusals: unknown[] = [];
    const after: LiveOptions["after"] = (ms, task) => clock.after(ms, task);
    const here = page(scene, { after, onStatus: (...told) => refusals.push(told) }, "not-a-token");
    const refused = { code: "unauthorized", status: 401 };
    await expect(here.live.command("me", {})).rejects.toMatchObject(refused);
    expect(refusals).toMatchObject([["lost", refused]]);
    await expect(here.live.command("me", {})).rejects.toMatchObject(refused);
    expect([clock.pending, here.sockets.length]).toEqual([0, 1]);
    here.live.retry();
    await expect.poll(() => refusals.at(-1)).toMatchObject(["lost", refused]);
    expect(here.sockets).toHaveLength(2);
  });

  it("waits longer each time, within bounds, and not all at the same time", () => {
    const waits = [0, 1, 2, 3, 50].map((attempt) => [
      reconnectDelay(attempt, () => 0),
      reconnectDelay(attempt, () => 1),
    ]);
    expect(waits).toEqual([
      [150, 300],
      [300, 600],
      [600, 1200],
      [1200, 2400],
      [10_000, 20_000],
    ]);
  });

  it("refuses a token that cannot travel as a protocol", () => {
    expect(() => new ToolcribClient({ url: "http://x", token: "a b" }).live()).toThrow("may contain only");
  });
});
