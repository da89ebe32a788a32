import { describe, expect, it, vi } from "vitest";
import { ask, isRunning, pidIn, ReloadPlace, toolNames, WAIT, watchEvents } from "./reload-place.ts";

const TOOLS = { tools: ["who", "wait"] };

describe("[gate-07c] a call that runs during a reload", () => {
  it("finishes with its answer on a server that is removed", async () => {
    const place = new ReloadPlace();
    const hub = await place.start({ mcpServers: { a: place.server("a", TOOLS) } });
    const running = ask(hub, "a__wait");
    await place.appears("a.waiting");

    place.write({});
    expect(await hub.reload()).toMatchObject({ removed: ["a"] });
    expect(hub.servers.list()).toEqual([]);
    expect(toolNames(hub)).toEqual([]);
    expect(await ask(hub, "a__who")).toBe("not_found");

    place.touch("a.go");
    const answer = await running;
    expect(answer).toContain("a ");
    await vi.waitFor(() => expect(isRunning(pidIn(answer))).toBe(false), WAIT);
  });

  it("finishes with its answer on a server that is changed, while new calls go to the new one", async () => {
    const place = new ReloadPlace();
    const hub = await place.start({ mcpServers: { a: place.server("old", TOOLS) } });
    const running = ask(hub, "a__wait");
    await place.appears("old.waiting");
    const seen = watchEvents(hub);

    place.write({ mcpServers: { a: place.server("new", TOOLS) } });
    expect(await hub.reload()).toMatchObject({ changed: ["a"] });
    expect(await ask(hub, "a__who")).toContain("new ");

    place.touch("old.go");
    const answer = await running;
    expect(answer).toContain("old ");
    await vi.waitFor(() => expect(isRunning(pidIn(answer))).toBe(false), WAIT);
    // Both offer the same, so there is nothing to tell of.
    expect(seen.catalog).toEqual([]);
    expect(seen.servers).toEqual(["a ready"]);
  });

  it("goes on under the rules with which it began", async () => {
    const place = new ReloadPlace();
    const mcpServers = { a: place.server("a", TOOLS) };
    const hub = await place.start({ mcpServers });
    const running = ask(hub, "a__wait");
    await place.appears("a.waiting");
    place.write({ mcpServers, tools: { deny: ["*"] }, limits: { resultBytes: 1 } });
    await hub.reload();
    place.touch("a.go");
    expect(await running).toContain("a ");
    expect(await ask(hub, "a__who")).toBe("denied");
  });
});

describe("[gate-07c] a server that is changed", () => {
  it("is served by the old connection until the new one is ready", async () => {
    const place = new ReloadPlace();
    const hub = await place.start({ mcpServers: { a: place.server("old") } });
    const seen = watchEvents(hub);
    place.write({ mcpServers: { a: place.server("new", { tools: ["who", "more"], gate: "open" }) } });
    const reloaded = hub.reload();
    await vi.waitFor(() => expect(seen.reloads).toHaveLength(1), WAIT);
    expect(await ask(hub, "a__who")).toContain("old ");
    expect(hub.servers.list()[0]?.state).toBe("ready");
    place.touch("open");
    await reloaded;
    expect(await ask(hub, "a__who")).toContain("new ");
    expect(seen.catalog.map(({ added, removed, changed }) => [added, removed, changed])).toEqual([
      [["a__more"], [], []],
    ]);
    expect(seen.servers).toEqual(["a ready"]);
  });

  it("shows why, once the new one has failed", async () => {
    const place = new ReloadPlace();
    const hub = await place.start({ mcpServers: { a: place.server("a") } });
    const before = await ask(hub, "a__who");
    place.write({ mcpServers: { a: { command: `${place.dir}/no-such-program` } } });
    await hub.reload();
    expect(hub.servers.list()[0]).toMatchObject({ id: "a", state: "failed" });
    expect(await ask(hub, "a__who")).toBe("server_unavailable");
    await vi.waitFor(() => expect(isRunning(pidIn(before))).toBe(false), WAIT);

    place.write({ mcpServers: { a: place.server("mended") } });
    await hub.reload();
    expect(await ask(hub, "a__who")).toContain("mended ");
  });

  it("is trusted only when the server that the entry trusts is the one that serves", async () => {
    const place = new ReloadPlace();
    const hub = await place.start({ mcpServers: { a: place.server("old") } });
    const seen = watchEvents(hub);
    const isMarked = async (): Promise<boolean> => {
      const outcome = await hub.call({ name: "a__who", audience: "agent" });
      return outcome.ok && outcome.result._meta?.["dev.toolcrib/untrusted"] !== undefined;
    };
    place.write({ mcpServers: { a: place.server("new", { gate: "open" }, { trust: "trusted" }) } });
    const reloaded = hub.reload();
    await vi.waitFor(() => expect(seen.reloads).toHaveLength(1), WAIT);
    expect(await isMarked()).toBe(true);
    place.touch("open");
    await reloaded;
    expect(await isMarked()).toBe(false);
  });

  it("with a connection for each user serves every user anew", async () => {
    const place = new ReloadPlace();
    const entry = (label: string): ReturnType<ReloadPlace["server"]> =>
      place.server(label, { instructions: `Use ${label}.` }, { isolation: "user" });
    const hub = await place.open({});
    const user = hub.openSession({ user: "u" });
    await hub.reload({ mcpServers: { a: entry("old") } });
    const before = await ask(hub, "a__who", user);
    expect(before).toContain("old ");
    expect(before).not.toBe(await ask(hub, "a__who"));
    await hub.reload({ mcpServers: { a: entry("new") } });
    expect(await ask(hub, "a__who", user)).toContain("new ");
    expect(hub.internals.instructions(user)).toMatchObject([{ text: "Use new." }]);
    expect(hub.internals.instructions(hub.openSession({ owner: false }))).toEqual([]);
    await vi.waitFor(() => expect(isRunning(pidIn(before))).toBe(false), WAIT);
  });

  it("again before it is ready becomes what the last config says", async () => {
    const place = new ReloadPlace();
    const first = place.server("first");
    const hub = await place.start({ mcpServers: { a: first } });
    const [before, seen] = [await ask(hub, "a__who"), watchEvents(hub)];
    const never = hub.reload({ mcpServers: { a: place.server("never", { gate: "never" }) } });
    const last = hub.reload({ mcpServers: { a: place.server("last"), b: place.server("b") } });
    expect((await last).changed).toEqual(["a"]);
    expect((await never).changed).toEqual(["a"]);
    expect(await ask(hub, "a__who")).toContain("last ");
    expect(seen.reloads.map(({ added }) => added)).toEqual([[], ["b"]]);
    await vi.waitFor(() => expect(isRunning(pidIn(before))).toBe(false), WAIT);
  });

  it("and changed back before it is ready was never touched", async () => {
    const place = new ReloadPlace();
    const entry = place.server("a");
    const hub = await place.open({ mcpServers: { a: entry } });
    const before = await ask(hub, "a__who");
    const never = hub.reload({ mcpServers: { a: place.server("never", { gate: "never" }) } });
    const back = hub.reload({ mcpServers: { a: entry } });
    await Promise.all([never, back]);
    expect(await ask(hub, "a__who")).toBe(before);
  });

  it("can be closed with the hub at any moment", async () => {
    const place = new ReloadPlace();
    const hub = await place.open({ mcpServers: { a: place.server("old", TOOLS) } });
    const pid = pidIn(await ask(hub, "a__who"));
    const running = ask(hub, "a__wait");
    await place.appears("old.waiting");
    await hub.reload({ mcpServers: { a: place.server("new") } });
    const seen = watchEvents(hub);
    const pending = hub.reload({ mcpServers: { a: place.server("never", { gate: "never" }) } });
    await vi.waitFor(() => expect(seen.reloads).toHaveLength(1), WAIT);
    await hub.close();
    expect(await running).toBe("cancelled");
    expect(await pending).toMatchObject({ changed: ["a"] });
    expect(isRunning(pid)).toBe(false);
    expect(hub.servers.list()[0]?.state).toBe("closed");
  });
});
