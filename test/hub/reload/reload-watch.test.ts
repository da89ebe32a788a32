import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { loadMCPServers } from "../../../src/hub/create/load-mcp-servers.ts";
import { ToolRegistry } from "../../../src/tools/tool-registry.ts";
import { ask, ReloadPlace, toolNames, WAIT, watchEvents } from "./reload-place.ts";

describe("[gate-07a] a hub that watches its config", () => {
  it("picks up a write in place and an atomic replacement", async () => {
    const place = new ReloadPlace();
    const a = place.server("a");
    const hub = await place.start({ mcpServers: { a } });
    const [before, seen] = [await ask(hub, "a__who"), watchEvents(hub)];
    hub.internals.watch();

    place.write({ mcpServers: { a, b: place.server("b") } });
    await vi.waitFor(() => expect(toolNames(hub)).toEqual(["a__who", "b__who"]), WAIT);
    place.replace({ mcpServers: { a, c: place.server("c") } });
    await vi.waitFor(() => expect(toolNames(hub)).toEqual(["a__who", "c__who"]), WAIT);

    expect(seen.reloads.map(({ added, removed, kept }) => [added, removed, kept])).toEqual([
      [["b"], [], ["a"]],
      [["c"], ["b"], ["a"]],
    ]);
    expect(await ask(hub, "a__who")).toBe(before);
    expect(seen.servers.filter((event) => event.startsWith("a "))).toEqual([]);
    expect(seen.warnings).toEqual([]);
  });

  it("[gate-07c] keeps the old state while the file is broken, and says so", async () => {
    const place = new ReloadPlace();
    const a = place.server("a");
    const hub = await place.start({ mcpServers: { a } });
    const [before, seen] = [await ask(hub, "a__who"), watchEvents(hub)];
    hub.internals.watch();
    place.write('{ "mcpServers": { ');
    await vi.waitFor(() => expect(seen.warnings).toHaveLength(1), WAIT);
    expect(seen.warnings[0]).toContain("is not used");
    expect(seen.warnings[0]).toContain(place.file);
    expect(await ask(hub, "a__who")).toBe(before);
    expect(seen.reloads).toEqual([]);
    expect(hub.warnings().map(({ message }) => message)).toEqual(seen.warnings);
    // As it was, so that nothing is loaded again.
    place.write({ mcpServers: { a } });
    await vi.waitFor(() => expect(hub.warnings()).toEqual([]), WAIT);
    expect(seen.reloads).toEqual([]);

    place.write({ mcpServers: { a }, tools: { deny: ["*"] } });
    await vi.waitFor(() => expect(seen.reloads).toHaveLength(1), WAIT);
    expect(await ask(hub, "a__who")).toBe("denied");
    expect([seen.servers, seen.catalog]).toEqual([[], []]);
  });

  it("follows imported files, and those that are imported only later", async () => {
    const place = new ReloadPlace();
    mkdirSync(join(place.dir, "more"));
    const imported = join(place.dir, "more", "servers.json");
    const hub = await place.start({});
    const seen = watchEvents(hub);
    hub.internals.watch();
    place.write({ import: ["more/servers.json"] });
    await vi.waitFor(() => expect(seen.reloads).toHaveLength(1), WAIT);
    expect(hub.config.files).toContain(imported);
    place.write({ mcpServers: { a: place.server("a") } }, imported);
    await vi.waitFor(() => expect(toolNames(hub)).toEqual(["a__who"]), WAIT);
    place.replace({ mcpServers: { b: place.server("b") } }, imported);
    await vi.waitFor(() => expect(toolNames(hub)).toEqual(["b__who"]), WAIT);
  });

  it("picks up what changed before it began to watch, and nothing if nothing did", async () => {
    const place = new ReloadPlace();
    const hub = await place.start({});
    const seen = watchEvents(hub);
    hub.internals.watch()();
    place.write({ mcpServers: { a: place.server("a") } });
    hub.internals.watch();
    await vi.waitFor(() => expect(toolNames(hub)).toEqual(["a__who"]), WAIT);
    expect(seen.reloads).toHaveLength(1);
  });

  it("takes up the answer that it wrote down itself", async () => {
    const place = new ReloadPlace();
    const config = { mcpServers: { a: place.server("a") }, tools: { ask: ["a__*"] } };
    let asked = 0;
    const onAsk = (): "always" => {
      asked += 1;
      return "always";
    };
    const hub = await place.start(config, { onAsk });
    const seen = watchEvents(hub);
    hub.internals.watch();
    const before = await ask(hub, "a__who");
    await vi.waitFor(() => expect(seen.reloads).toHaveLength(1), WAIT);
    expect(hub.config.config.tools.ask).toEqual(["a__*", "!=tool:a__who"]);
    expect(await ask(hub, "a__who")).toBe(before);
    expect(asked).toBe(1);

    // Whoever takes the answer out again means it.
    place.write(config);
    await vi.waitFor(() => expect(seen.reloads).toHaveLength(2), WAIT);
    expect(await ask(hub, "a__who")).toBe(before);
    expect(asked).toBe(2);
  });

  it("keeps a registry in step", async () => {
    const place = new ReloadPlace();
    const server = place.server("a", { tools: ["who", "other"] });
    place.write({ mcpServers: { a: server } });
    const registry = new ToolRegistry();
    const told: string[][] = [];
    await using mcp = await loadMCPServers(place.file, registry, {
      home: join(place.dir, "home"),
      onToolsChanged: (tools) => told.push(tools.map(({ name }) => name)),
    });
    told.length = 0;
    await mcp.hub.reload({ mcpServers: { a: { ...server, tools: { deny: ["other"] } } } });
    expect(registry.list().map(({ name }) => name)).toEqual(["a__who"]);
    expect(told).toEqual([["a__who"]]);
    await mcp.hub.reload({ mcpServers: { a: { ...server, tools: { deny: ["other"] } } }, guard: { wrap: "none" } });
    expect(told).toHaveLength(1);
  });
});
