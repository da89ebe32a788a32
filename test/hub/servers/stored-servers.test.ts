import { describe, expect, it, vi } from "vitest";
import { createHub } from "../../../src/hub/create/create-hub.ts";
import type { Store } from "../../../src/store/store.ts";
import { openStore } from "../../../src/store/open-store.ts";
import { ids, Place, refused, sound, textOf } from "./place.ts";

describe("[oper-02a] servers that are added while the hub runs", () => {
  it("are used at once, are there at the next start, and touch no other server", async () => {
    const place = new Place({ mcpServers: { own: sound() } });
    const hub = await place.hub();
    const pidBefore = await textOf(hub, "own__pids");
    const info = await hub.servers.add("added", sound());
    expect(info).toMatchObject({
      id: "added",
      state: "ready",
      origin: { dialect: "store", file: hub.internals.store?.place },
    });
    expect(await textOf(hub, "added__echo", { text: "hello" })).toBe("hello");
    expect(await textOf(hub, "own__pids")).toBe(pidBefore);
    expect(await hub.servers.get("added")).toMatchObject({ from: "store", editable: true, config: sound() });
    expect(await hub.servers.get("own")).toMatchObject({ from: "file", editable: false, origin: { file: place.file } });
    await hub.close();

    const next = await place.hub();
    expect(ids(next)).toEqual(["own", "added"]);
    expect(await textOf(next, "added__echo", { text: "again" })).toBe("again");
    const pinStates = (): string[] => [...new Set(next.pins.list({ server: "added" }).map(({ state }) => state))];
    expect(pinStates()).toEqual(["same"]);
    await next.servers.remove("added");
    expect([ids(next), pinStates()]).toEqual([["own"], ["gone"]]);
    expect(next.view(next.session).tools.some(({ name }) => name.startsWith("added__"))).toBe(false);
    await next.close();
    const last = await place.hub({ connect: "none" });
    expect(ids(last)).toEqual(["own"]);
    expect(last.pins.list({ server: "own", state: "unknown" })).toEqual(last.pins.list({ server: "own" }));
  });

  it("survive a reload of the file, and come behind its servers", async () => {
    const place = new Place();
    const hub = await place.hub({ connect: "none" });
    await hub.servers.add("added", sound());
    place.write("toolcrib.json", { mcpServers: { own: sound() } });
    const report = await hub.reload();
    expect(report).toMatchObject({ added: ["own"], kept: ["added"], removed: [] });
    expect(ids(hub)).toEqual(["own", "added"]);
  });

  it("give way to the user's file, which is told of once, and come back when it no longer names them", async () => {
    const place = new Place();
    const first = await place.hub({ connect: "none" });
    await first.servers.add("files", { command: "from-store" });
    await first.close();

    place.write("toolcrib.json", { mcpServers: { files: sound() } });
    const hub = await place.hub();
    await hub.reload();
    expect((await hub.servers.get("files"))?.from).toBe("file");
    const told = hub.warnings().filter(({ message }) => message.includes('"files" of the store is not used'));
    expect(told).toHaveLength(1);
    for (const change of [hub.servers.update("files", { timeout: 5 }), hub.servers.remove("files")]) {
      expect(await refused(change)).toMatchObject({
        code: "conflict",
        hint: expect.stringContaining(`${place.file}:3`),
        details: { file: place.file, line: 3 },
      });
    }
    expect(await refused(hub.servers.add("files", sound()))).toMatchObject({ code: "conflict" });
    expect((await hub.servers.disconnect("files")).state).toBe("idle");
    expect((await hub.servers.connect("files")).state).toBe("ready");

    place.write("toolcrib.json", {});
    await hub.reload();
    expect(await hub.servers.get("files")).toMatchObject({ from: "store", config: { command: "from-store" } });
  });

  it("are changed in parts, keep their references, and connect anew only where the link is other", async () => {
    const hub = await new Place().hub({ env: { ...process.env, HIDDEN: "value-of-hidden" } });
    await hub.servers.add("s", { ...sound(), env: { A: "1", B: "${HIDDEN}" }, tags: ["x"], name: "Old" });
    const pids = await textOf(hub, "s__pids");
    await hub.servers.update("s", { name: "New", tags: null });
    expect(await textOf(hub, "s__pids")).toBe(pids);
    await hub.servers.update("s", { env: { A: null, C: "3" } });
    expect(await textOf(hub, "s__pids")).not.toBe(pids);
    expect((await hub.servers.get("s"))?.config).toEqual({ ...sound(), name: "New", env: { B: "${HIDDEN}", C: "3" } });
    expect(await hub.servers.update("s", { disabled: true })).toMatchObject({ state: "disabled", name: "New" });
    expect(await hub.servers.update("s", { enabled: null, autoConnect: false })).toMatchObject({ state: "idle" });
    expect(await refused(hub.servers.update("s", { command: null }))).toMatchObject({
      code: "invalid_config",
      message: expect.stringContaining("neither command nor url"),
    });
    expect(await refused(hub.servers.update("s", { id: "t" }))).toMatchObject({ code: "invalid_arguments" });
    expect(await refused(hub.servers.update("none", {}))).toMatchObject({ code: "not_found" });
  });

  it("[oper-04d] are changed only as they were seen", async () => {
    const hub = await new Place().hub({ connect: "none" });
    await hub.servers.add("s", { command: "a" });
    const seen = (await hub.servers.get("s"))?.etag ?? "";
    expect(seen).toMatch(/^"[\w-]+"$/);
    await hub.servers.update("s", { args: ["1"] }, { ifMatch: seen });
    const actual = (await hub.servers.get("s"))?.etag;
    expect(actual).not.toBe(seen);
    const late = { code: "conflict", details: { expected: seen, actual } };
    expect(await refused(hub.servers.update("s", { args: ["2"] }, { ifMatch: seen }))).toMatchObject(late);
    expect(await refused(hub.servers.remove("s", { ifMatch: seen }))).toMatchObject(late);
    // Saying the same again changes nothing.
    await hub.servers.update("s", { args: ["1"] }, { ifMatch: `W/"x", ${actual}` });
    expect((await hub.servers.get("s"))?.etag).toBe(actual);
    await hub.servers.remove("s", { ifMatch: "*" });
    expect(await hub.servers.get("s")).toBeUndefined();
  });

  it("[whole-01b] are refused with a reason when they are none, and when there are enough", async () => {
    const hub = await new Place({ limits: { servers: 1 } }).hub({ connect: "none" });
    expect(await refused(hub.servers.add("a b/c", sound()))).toMatchObject({ code: "invalid_config" });
    const wrong = await refused(hub.servers.add("s", { command: "x", url: "https://h.example", timeout: "soon" }));
    expect(wrong).toMatchObject({ code: "invalid_config", details: { problems: [{ path: "timeout" }] } });
    const typo = { message: 'server "s": autoconnect: this key is unknown (did you mean "autoConnect"?)' };
    const sent = { ...sound(), autoconnect: false };
    expect(await refused(hub.servers.add("s", sent))).toMatchObject({ code: "invalid_config", ...typo });
    expect(await refused(hub.servers.test("s", sent))).toMatchObject({ code: "invalid_config", ...typo });
    const missing = await refused(hub.servers.add("s", { comand: "x" }));
    expect(missing.message).toMatch(
      /neither command nor url[^]*comand: this key is unknown \(did you mean "command"\?\)/,
    );
    const odd = await hub.servers.add("one", { type: "stdio", description: "d", disabled: true, ...sound() });
    expect(odd.warnings).toEqual([expect.stringMatching(/description: .* left out/)]);
    expect(await refused(hub.servers.update("one", { callTimeoutMs: 5 }))).toMatchObject({
      code: "invalid_config",
      details: { problems: [{ path: "callTimeoutMs", code: "unknown_key" }] },
    });
    expect((await hub.servers.update("one", { trust: true })).warnings).toEqual([expect.stringContaining("trust: ")]);
    expect(await refused(hub.servers.add("two", sound()))).toMatchObject({ code: "conflict", details: { limit: 1 } });
    expect(await hub.internals.store?.servers.list()).toHaveLength(1);
  });

  it("fail alone when the store holds nonsense, and can be mended or removed", async () => {
    const place = new Place();
    const store = await openStore({ home: place.home });
    await store?.servers.insert({ id: "bad", entry: { command: 7 }, source: "api" });
    await store?.servers.insert({ id: "good", entry: sound(), source: "api" });
    await store?.close();
    const hub = await place.hub({ connect: "none" });
    expect(hub.servers.list()).toMatchObject([
      { id: "good", state: "idle" },
      { id: "bad", state: "failed", lastError: expect.stringContaining("command: found") },
    ]);
    expect(await hub.servers.get("bad")).toMatchObject({ from: "store", editable: true, config: { command: 7 } });
    expect(await refused(hub.servers.connect("bad"))).toMatchObject({ code: "invalid_config" });
    expect(hub.warnings().map(({ message }) => message)).toContainEqual(expect.stringContaining('"bad" of the store'));
    await hub.servers.update("bad", { command: "x" });
    expect(ids(hub)).toEqual(["bad", "good"]);
  });

  it("are taken back when they cannot be taken up", async () => {
    const place = new Place();
    const store = await openStore({ home: place.home });
    if (store === undefined) throw new Error("no store");
    const closing: { hub?: () => void } = {};
    const insert: Store["servers"]["insert"] = async (server) => {
      const stored = await store.servers.insert(server);
      closing.hub?.();
      return stored;
    };
    const hub = await place.hub({ store: { ...store, servers: { ...store.servers, insert } } });
    closing.hub = () => void hub.close();
    expect(await refused(hub.servers.add("s", sound()))).toMatchObject({ message: "The hub is closed." });
    await hub.close();
    expect(await store.servers.list()).toEqual([]);
    await store.close();
  });

  it("live as long as a hub without a store", async () => {
    const hub = await createHub({}, { home: new Place().home });
    expect(hub.internals.store).toBeUndefined();
    expect(await hub.servers.add("s", sound())).toMatchObject({ state: "ready", origin: { file: "memory" } });
    await hub.servers.update("s", { tags: ["x"] });
    expect(await hub.servers.get("s")).toMatchObject({ from: "store", editable: true, tags: ["x"] });
    await hub.servers.remove("s");
    expect(ids(hub)).toEqual([]);
    await hub.close();
  });

  it("reach the other hubs on the same home", async () => {
    const place = new Place();
    const [one, other] = [await place.hub({ connect: "none" }), await place.hub()];
    other.internals.watch();
    await one.servers.add("s", sound());
    await vi.waitFor(() => expect(other.servers.list()).toMatchObject([{ id: "s", state: "ready" }]), {
      timeout: 60_000,
    });
    await one.servers.update("s", { tags: ["x"] });
    await vi.waitFor(() => expect(other.servers.list()).toMatchObject([{ id: "s", tags: ["x"] }]), { timeout: 60_000 });
    await one.servers.remove("s");
    await vi.waitFor(() => expect(other.servers.list()).toEqual([]), { timeout: 60_000 });
  });

  it("are seen by a single command, which makes no database", async () => {
    const place = new Place();
    expect((await place.hub({ store: "existing" })).internals.store).toBeUndefined();
    const hub = await place.hub({ connect: "none" });
    await hub.servers.add("s", sound());
    const command = await place.hub({ store: "existing", connect: "none" });
    expect(command.servers.list()).toMatchObject([{ id: "s", origin: { dialect: "store" } }]);
  });
});

describe("[oper-02b] etc/mcp-servers.json of the home", () => {
  const ETC = "etc/mcp-servers.json";

  it("goes into the store once, and what was removed does not come back", async () => {
    const place = new Place({ mcpServers: { named: { command: "of-the-file" } } });
    const etc = place.write(ETC, { mcpServers: { a: { command: "a" }, b: { command: "b" }, named: { command: "n" } } });
    const command = await place.hub({ connect: "none", store: "existing" });
    expect((await command.servers.get("a"))?.from).toBe("import");
    const hub = await place.hub({ connect: "none" });
    expect((await hub.internals.store?.servers.list())?.map(({ id, source }) => [id, source])).toEqual([
      ["a", etc],
      ["b", etc],
    ]);
    expect(await hub.servers.get("a")).toMatchObject({ from: "store", editable: true, config: { command: "a" } });
    expect(await hub.servers.get("named")).toMatchObject({ from: "file", config: { command: "of-the-file" } });
    await hub.servers.remove("a");
    await hub.servers.update("b", { args: ["changed"] });
    await hub.close();

    place.write(ETC, { mcpServers: { a: { command: "a" }, b: { command: "other" }, c: { command: "c" } } });
    const next = await place.hub({ connect: "none" });
    expect(ids(next)).toEqual(["named", "b", "c"]);
    expect(await next.servers.get("b")).toMatchObject({ config: { command: "b", args: ["changed"] } });
  });

  it("is the user's own where the config imports it", async () => {
    const place = new Place({ import: ["./etc/mcp-servers.json"] });
    place.write(ETC, { mcpServers: { a: { command: "a" } } });
    const hub = await place.hub({ connect: "none" });
    expect(await hub.servers.get("a")).toMatchObject({ from: "import", editable: false });
    expect(await hub.internals.store?.servers.list()).toEqual([]);
  });

  it("[oper-02d] keeps an entry with a plain secret out of the store", async () => {
    const place = new Place();
    place.write(ETC, { mcpServers: { a: { command: "a", env: { API_TOKEN: "canary-99" } } } });
    const hub = await place.hub({ connect: "none" });
    expect(await hub.servers.get("a")).toMatchObject({ from: "import", config: { env: { API_TOKEN: "[redacted]" } } });
    expect(await hub.internals.store?.servers.list()).toEqual([]);
    expect(hub.warnings().map(({ message }) => message)).toContainEqual(expect.stringContaining("env.API_TOKEN"));
    expect(JSON.stringify(hub.warnings())).not.toContain("canary-99");
  });
});
