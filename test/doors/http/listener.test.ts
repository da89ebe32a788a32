import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { processStart } from "../../../src/files/processes.ts";
import type { HttpRoute } from "../../../src/doors/http/http-exchange.ts";
import { writeHubFile } from "../../../src/hub/activity/hub-file.ts";
import { VERSION } from "../../../src/model/version.ts";
import { findHub, type HubRecord, readHubRecords } from "../../../src/hub/activity/hub-records.ts";
import { place, temporaryHome } from "./support.ts";

describe("[gate-11a] the listener's life", () => {
  it("healthz, readyz and the page say how it is", async () => {
    let ready = false;
    const { ask } = await place(
      { auth: { tokens: [{ token: "a-token-0123456789" }] } },
      {
        ready: () => ready,
        index: () => "MCP is at /mcp\n",
      },
    );
    expect((await ask("/healthz")).json<object>()).toEqual({ status: "ok" });
    const notYet = await ask("/readyz");
    expect([notYet.status, notYet.json().error.code]).toEqual([503, "server_unavailable"]);
    expect(notYet.json<object>()).toMatchObject({ status: "starting" });
    ready = true;
    const now = await ask("/readyz");
    expect([now.status, now.json<object>()]).toEqual([200, { status: "ready" }]);
    const page = await ask("/");
    expect(page.text).toBe("MCP is at /mcp\n");
    expect(page.headers["content-type"]).toBe("text/plain; charset=utf-8");
    expect((await ask("/", { method: "HEAD" })).text).toBe("");
    const posted = await ask("/healthz", { method: "POST" });
    expect([posted.status, posted.headers["allow"]]).toEqual([405, "GET, HEAD"]);
    expect((await ask("/healthz/x")).status).toBe(404);
    expect((await ask("/other")).status).toBe(404);
  });

  it("[scale-09d] readyz says what cannot be reached, and that it is served all the same, until it stops", async () => {
    const problems: string[] = [];
    const troubles = () => ({ problems, store: problems.length === 0 ? ("up" as const) : ("down" as const) });
    const there = await place({}, { troubles });
    const seen = async () => {
      const answer = await there.ask("/readyz");
      return [answer.status, answer.headers.connection, answer.json<object>()];
    };
    expect(await seen()).toEqual([200, "close", { status: "ready", problems: [], store: "up" }]);
    problems.push("no store");
    expect(await seen()).toEqual([200, "close", { status: "degraded", problems: ["no store"], store: "down" }]);
    const open = (await there.open()).send("GET /healthz HTTP/1.1", "Host: localhost", "", "");
    expect(await open.until(/"ok"/)).toContain("Connection: keep-alive");
    there.listener.beginStopping();
    expect(await seen()).toMatchObject([503, "close", { status: "stopping", error: { code: "server_unavailable" } }]);
    open.send("GET /healthz HTTP/1.1", "Host: localhost", "", "");
    expect(await open.ended()).toContain("Connection: close");
  });

  it("the longest path that fits is the route; own routes of the caller count as much", async () => {
    const says = (path: string): HttpRoute => ({
      path,
      access: "read",
      handle: ({ response, path: asked }) => void response.end(`${path} ${asked}`),
    });
    const { ask } = await place({}, { routes: [says("/api"), says("/api/v1/approvals"), says("/api/v1")] });
    expect((await ask("/api/v1/approvals/7")).text).toBe("/api/v1/approvals /api/v1/approvals/7");
    expect((await ask("/api/v1x")).text).toBe("/api /api/v1x");
    expect((await ask("/api/v1/")).text).toBe("/api/v1 /api/v1");
  });

  it("stopAccepting lets what is under way end, takes nobody new and is not ready; close ends the rest", async () => {
    const finish = Promise.withResolvers<void>();
    const route: HttpRoute = {
      path: "/long",
      access: "read",
      handle: async ({ response, query }) => {
        response.writeHead(200);
        response.write("begun ");
        if (query.has("forever")) return;
        await finish.promise;
        response.end("done");
      },
    };
    const there = await place({}, { routes: [route] });
    const running = (await there.open()).send("GET /long HTTP/1.1", "Host: localhost", "", "");
    const endless = (await there.open()).send("GET /long?forever HTTP/1.1", "Host: localhost", "", "");
    await Promise.all([running.until(/begun/), endless.until(/begun/)]);
    await Promise.all([there.listener.stopAccepting(), there.listener.stopAccepting()]);
    await expect(there.ask("/healthz")).rejects.toMatchObject({ code: "ECONNREFUSED" });
    finish.resolve();
    await running.until(/done/);
    running.send("GET /readyz HTTP/1.1", "Host: localhost", "", "");
    await running.until(/HTTP\/1\.1 503/);
    await Promise.all([there.listener.close(), there.listener.close()]);
    expect(await endless.ended()).not.toContain("done");
    await running.ended();
  });

  it("[whole-40a] a connection that was made before may bring its first request after", async () => {
    const there = await place();
    const [fresh, begun, silent] = await Promise.all([there.open(), there.open(), there.open()]);
    begun.send("GET /healthz HTTP/1.1", "");
    await expect.poll(() => there.ask("/healthz").then(({ status }) => status)).toBe(200);
    let isOver = false;
    const stopped = there.listener.stopAccepting().then(() => (isOver = true));
    await expect.poll(() => there.ask("/healthz").catch(() => "refused")).toBe("refused");
    expect(isOver).toBe(false);
    fresh.send("GET /healthz HTTP/1.1", "Host: localhost", "", "");
    begun.send("Host: localhost", "", "");
    for (const each of [fresh, begun]) {
      const answer = await each.ended();
      expect(answer).toContain("200 OK");
      expect(answer).toContain("Connection: close");
    }
    // A connection that brings nothing holds nobody up for long.
    await stopped;
    await there.listener.close();
    expect(await silent.ended()).toBe("");
  });

  it("[whole-40a] what is written is read to its end before connections are closed", async () => {
    const text = "x".repeat(5_000_000);
    const answered = Promise.withResolvers<void>();
    const handle: HttpRoute["handle"] = ({ response }) => {
      response.end(text);
      answered.resolve();
    };
    const there = await place({}, { routes: [{ path: "/large", access: "read", handle }] });
    const reading = there.ask("/large");
    await answered.promise;
    await there.listener.close();
    expect((await reading).text).toHaveLength(text.length);
  });

  it("close without anything open, and after everything ended by itself, resolves", async () => {
    const there = await place();
    void there.listener.stopAccepting();
    await expect.poll(() => there.ask("/healthz").catch(() => "gone")).toBe("gone");
    await expect(there.listener.close()).resolves.toBeUndefined();
    await expect((await place()).listener.close()).resolves.toBeUndefined();
  });

  it("an address in use is told with what to do", async () => {
    const { listener } = await place();
    await expect(place({ port: listener.port })).rejects.toMatchObject({
      code: "conflict",
      message: expect.stringContaining(`127.0.0.1:${listener.port} is in use`),
      hint: expect.stringMatching(/toolcrib hub .*--port .*http\.port/),
    });
    await expect(
      place({ host: "192.0.2.77", auth: { tokens: [{ token: "a-token-0123456789" }] } }),
    ).rejects.toMatchObject({
      code: "invalid_config",
    });
  });

  it("keeps a connection for several requests, and answers them in order", async () => {
    const { open } = await place();
    const raw = (await open()).send(
      "GET /mcp?n=1 HTTP/1.1",
      "Host: localhost",
      "",
      "GET /mcp?n=2 HTTP/1.1",
      "Host: localhost",
      "Connection: close",
      "",
      "",
    );
    const answers = await raw.ended();
    expect(answers.indexOf('["n","1"]')).toBeGreaterThan(0);
    expect(answers.indexOf('["n","2"]')).toBeGreaterThan(answers.indexOf('["n","1"]'));
  });
});

describe("[gate-10c] the file by which commands find the hub", () => {
  const own = (home: string): string => join(home, "hubs", `${process.pid}.json`);

  it("is there while it listens, and only its user can read it", async () => {
    const there = await place({ publicUrl: "https://tools.example.com" });
    const record = JSON.parse(readFileSync(own(there.home), "utf8")) as HubRecord;
    expect(record).toEqual({
      url: there.url,
      publicUrl: "https://tools.example.com",
      pid: process.pid,
      start: processStart(process.pid),
      token: expect.stringMatching(/^[\w-]{43}$/),
      version: VERSION,
    });
    expect(statSync(own(there.home)).mode & 0o777).toBe(0o600);
    expect(statSync(join(there.home, "hubs")).mode & 0o777).toBe(0o700);
    expect(readHubRecords(there.home)).toEqual([{ ...record, background: false }]);
    await there.listener.close();
    expect(existsSync(own(there.home))).toBe(false);
    expect(readHubRecords(there.home)).toEqual([]);
  });

  it("what dead processes left is removed; other files and live ones stay", async () => {
    const home = temporaryHome();
    mkdirSync(join(home, "hubs"), { mode: 0o755 });
    const record = (pid: number): string => JSON.stringify({ url: "http://127.0.0.1:1", pid, token: "t" });
    writeFileSync(join(home, "hubs", "999999999.json"), record(999_999_999));
    writeFileSync(join(home, "hubs", "999999999-2.json"), record(999_999_999));
    writeFileSync(join(home, "hubs", `${process.ppid}.json`), record(process.ppid));
    writeFileSync(join(home, "hubs", "notes.txt"), "");
    writeFileSync(own(home), "left by a dead process of our id", { mode: 0o644 });
    expect(readHubRecords(home).map(({ pid }) => pid)).toEqual([process.ppid]);
    const there = await place({}, { home });
    expect(readdirSync(join(home, "hubs")).toSorted()).toEqual(
      [`${process.pid}.json`, `${process.ppid}.json`, "notes.txt"].toSorted(),
    );
    expect(statSync(own(home)).mode & 0o777).toBe(0o600);
    expect(statSync(join(home, "hubs")).mode & 0o777).toBe(0o700);
    await there.listener.close();
  });

  it("[sound-11a] is not followed where another program has the process id by now, and is removed", async () => {
    const home = temporaryHome();
    mkdirSync(join(home, "hubs"), { mode: 0o700 });
    const left = join(home, "hubs", `${process.ppid}.json`);
    const record = { url: "http://127.0.0.1:1", pid: process.ppid, token: "t", config: ["a.json"] };
    writeFileSync(left, JSON.stringify({ ...record, start: "7d444840-9dc0-11d1-b245-5ffdce74fad2 4711" }));
    expect(readHubRecords(home)).toEqual([]);
    expect(findHub(home, ["a.json"])).toBeUndefined();
    writeFileSync(left, JSON.stringify({ ...record, start: processStart(process.ppid) }));
    expect(findHub(home, ["a.json"])).toMatchObject(record);
    writeFileSync(left, JSON.stringify({ ...record, start: "4711" }));
    const there = await place({}, { home });
    expect(readdirSync(join(home, "hubs"))).toEqual([`${process.pid}.json`]);
    await there.listener.close();
  });

  it("two hubs of one process have a file each", async () => {
    const home = temporaryHome();
    const [one, other] = [await place({}, { home }), await place({}, { home })];
    expect(
      readHubRecords(home)
        .map(({ url }) => url)
        .toSorted(),
    ).toEqual([one.url, other.url].toSorted());
    await one.listener.close();
    expect(readHubRecords(home).map(({ url }) => url)).toEqual([other.url]);
  });

  it("a home that cannot be written is a warning, not the end", async () => {
    const home = join(temporaryHome(), "file");
    writeFileSync(home, "");
    const there = await place({}, { home });
    expect(there.warnings).toEqual([expect.stringContaining("toolcrib approve")]);
    expect((await there.ask("/mcp")).status).toBe(200);
    await expect(writeHubFile(home, { url: "u", pid: 1, token: "t" })).rejects.toMatchObject({ code: "ENOTDIR" });
  });
});
