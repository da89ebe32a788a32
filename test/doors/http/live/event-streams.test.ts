import { get, type IncomingMessage } from "node:http";
import { describe, expect, it, onTestFinished } from "vitest";
import { FakeClock } from "../../../support/fake-clock.ts";
import { BOSS, livePlace, type LivePlace, USER } from "./live-setup.ts";

class Stream {
  readonly response: IncomingMessage;
  text = "";
  readonly ended: Promise<void>;

  constructor(response: IncomingMessage) {
    this.response = response;
    response.setEncoding("utf8").on("data", (chunk: string) => (this.text += chunk));
    this.ended = new Promise((resolve) => response.once("close", () => resolve()));
    response.on("error", () => {});
    onTestFinished(() => void response.destroy());
  }

  /** Events as a browser reads them: id, name, data. */
  events(): [string | undefined, string | undefined, unknown][] {
    const blocks = this.text.split("\n\n").filter((block) => block.includes("data:"));
    return blocks.map((block) => {
      const field = (name: string): string | undefined => new RegExp(`^${name}: (.*)$`, "m").exec(block)?.[1];
      return [field("id"), field("event"), JSON.parse(field("data") ?? "null")];
    });
  }

  async until(count: number): Promise<ReturnType<Stream["events"]>> {
    await expect.poll(() => this.events().length).toBeGreaterThanOrEqual(count);
    return this.events();
  }
}

function open({ url }: LivePlace, query = "", headers: Record<string, string> = {}, token = BOSS): Promise<Stream> {
  return new Promise((resolve, reject) => {
    const options = { headers: { authorization: `Bearer ${token}`, ...headers }, agent: false };
    get(`${url}/api/v1/events${query}`, options, (response) => resolve(new Stream(response))).on("error", reject);
  });
}

describe("[oper-05d] events as SSE", () => {
  it("are the same as over the WebSocket, with ids to resume from", async () => {
    const scene = await livePlace();
    const [talk, stream] = [await scene.connect(), await open(scene)];
    const { epoch } = scene.feed;
    expect(stream.response.headers["content-type"]).toBe("text/event-stream");
    await stream.until(1);
    scene.hub.become("files", "ready");
    scene.hub.emit("warning", { message: "two\nlines" });
    const [hello, ...events] = await stream.until(5);
    expect(hello).toEqual([`${epoch}:0`, "hello", talk.frames[0]]);
    await expect.poll(() => talk.frames.length).toBe(5);
    expect(events).toEqual(
      talk.frames.slice(1).map((frame) => [`${epoch}:${String(frame["seq"])}`, frame["type"], frame]),
    );
  });

  it("go on after Last-Event-ID, or after the number in the address", async () => {
    const scene = await livePlace();
    for (const message of ["one", "two", "three"]) scene.hub.emit("warning", { message });
    const { epoch } = scene.feed;
    const streams = [
      await open(scene, "", { "last-event-id": `${epoch}:2` }),
      await open(scene, "?after=2"),
      await open(scene, `?after=2&epoch=${epoch}`),
      await open(scene, `?after=${epoch}:2`),
    ];
    for (const stream of streams) {
      const [hello, event] = await stream.until(2);
      expect(hello?.slice(0, 2)).toEqual([undefined, "hello"]);
      expect(event).toEqual([`${epoch}:3`, "warning", { seq: 3, type: "warning", message: "three" }]);
    }
    const [, lost] = await (await open(scene, "", { "last-event-id": "before:2" })).until(2);
    expect(lost).toEqual([`${epoch}:3`, "events.lost", { type: "events.lost", from: 0, to: 3 }]);
  });

  it("are narrowed by name, and to what the caller may hear", async () => {
    const scene = await livePlace();
    const [narrowed, reader] = [await open(scene, "?events=pins.*,call.finished"), await open(scene, "", {}, USER)];
    await Promise.all([narrowed.until(1), reader.until(1)]);
    scene.hub.emit("warning", { message: "x" });
    scene.hub.emit("pins", {});
    scene.hub.emit("visibility", {});
    expect((await narrowed.until(2))[1]?.[1]).toBe("pins.changed");
    expect((await reader.until(2))[1]?.[1]).toBe("mcp.catalog.changed");
  });

  it("refuses what it cannot give", async () => {
    const scene = await livePlace({ limits: { streams: { total: 1 } } });
    const status = async (path: string, method = "GET", token: string | undefined = BOSS): Promise<number> =>
      (await scene.ask(`/api/v1/events${path}`, { method, ...(token === "" ? {} : { token }) })).status;
    expect(await status("", "GET", "")).toBe(401);
    expect(await status("", "POST")).toBe(405);
    expect(await status("/x")).toBe(404);
    expect(await status("?after=-1")).toBe(400);
    expect(await status("?events=%3Cb%3E")).toBe(400);
    const only = await open(scene);
    expect(await status("", "GET", USER)).toBe(503);
    only.response.destroy();
    await expect.poll(() => scene.streams.size).toBe(0);
    expect(scene.feed.receivers).toBe(0);
    await open(scene);
  });

  it("says now and then that it is there, and at the end that it stops", async () => {
    const clock = new FakeClock();
    const scene = await livePlace({ clock });
    const stream = await open(scene);
    await stream.until(1);
    await clock.advance(15_000);
    await expect.poll(() => stream.text).toMatch(/\n:\n\n$/);
    scene.streams.close();
    await stream.ended;
    expect(stream.text).toMatch(/: the hub stops\n\n$/);
  });

  it("[oper-05c] cuts off who does not read", async () => {
    const scene = await livePlace();
    const slow = await open(scene);
    slow.response.pause();
    const message = "x".repeat(200_000);
    for (let told = 0; scene.streams.size === 1 && told < 1000; told++) {
      scene.hub.emit("warning", { message });
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect([scene.streams.size, scene.feed.receivers]).toEqual([0, 0]);
  });
});
