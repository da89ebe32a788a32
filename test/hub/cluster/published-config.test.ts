import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { loadConfig } from "../../../src/config/load-config.ts";
import { SharedConfig } from "../../../src/hub/cluster/shared-config.ts";
import type { ConfigInput } from "../../../src/model/config.ts";
import { ToolcribError } from "../../../src/model/errors.ts";
import { FakeClock, settle } from "../../support/fake-clock.ts";
import { MemorySettings } from "./memory-settings.ts";

const OFF = { command: "nothing", enabled: false };

interface Node {
  /** What holds there. */
  config(): Promise<ConfigInput>;
  readonly shared: SharedConfig;
  readonly file: string;
  readonly place: { readonly home: string; readonly texts: Map<string, string> };
  readonly warnings: string[];
}

describe("[scale-08a] the config of nodes that forget", () => {
  let dir: string;
  let settings: MemorySettings;
  let clock: FakeClock;
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), "toolcrib-published-"));
    settings = new MemorySettings();
    clock = new FakeClock();
  });
  afterEach(() => rmSync(dir, { recursive: true, force: true }));

  /** Starts with an empty home unless `home` is there; `deployed`: its file is mounted and cannot be written. */
  async function start(
    name: string,
    config: ConfigInput,
    { deployed = true, fresh = true }: { deployed?: boolean; fresh?: boolean } = {},
  ): Promise<Node> {
    const file = join(dir, name, "toolcrib.json");
    const home = join(dir, name, "home");
    if (fresh) rmSync(home, { recursive: true, force: true });
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, JSON.stringify(config));
    const place = { env: {}, cwd: "/", home, texts: new Map<string, string>() };
    const warnings: string[] = [];
    const refuse = async (): Promise<never> => {
      throw Object.assign(new Error("read-only file system"), { code: "EROFS" });
    };
    const shared = new SharedConfig({
      store: { ...settings.store, place: "memory" },
      ...{ file, place, clock },
      ...(deployed ? { edit: refuse, isWritable: async () => false } : {}),
      warn: (message) => void warnings.push(message),
    });
    await shared.begin(await loadConfig({ ...place, file }));
    const read = async (): Promise<ConfigInput> => {
      const text = place.texts.get(file) ?? readFileSync(file, "utf8");
      // What the node goes by is what the type says, or it would not load.
      return JSON.parse(text) as ConfigInput;
    };
    return { config: read, shared, file, place, warnings };
  }

  /** What holds for all, as the store has it. */
  const held = (): ConfigInput => {
    // As it is published.
    const { document } = JSON.parse(settings.text) as { document: ConfigInput };
    return document;
  };

  it("a rollout of a changed file changes what holds, and the same file changes nothing", async () => {
    const old = { tools: { deny: ["old_*"] }, mcpServers: { gone: OFF } };
    const changed = { tools: { deny: ["old_*", "wipe"] }, limits: { callsPerMinute: 7 } };
    for (const name of ["a", "b"]) await start(name, old);
    const before = settings.text;
    await start("a", old);
    expect(settings.text).toBe(before);
    const first = await start("a", changed);
    expect(held()).toEqual(changed);
    expect(first.warnings.join()).toMatch(/now apply to all nodes: .*mcpServers \(removed\)/);
    // The rollout has not come to it yet, and it is started again.
    const lagging = await start("b", old);
    expect(await lagging.config()).toMatchObject(changed);
    expect(lagging.warnings.join()).toMatch(/is older than its cluster's config.*tools\.deny/);
    expect(held()).toEqual(changed);
    expect((await start("b", changed)).warnings).toEqual([]);
    expect(held()).toEqual(changed);
  });

  it("what was changed through a node since stays when another file is rolled out", async () => {
    const file = { limits: { callsPerMinute: 10 }, tools: { ask: ["wipe"] } };
    await start("writes", file, { deployed: false });
    await start("a", file);
    const answered = { ...file, tools: { ask: ["wipe", "!wipe"] } };
    await start("writes", answered, { deployed: false, fresh: false });
    expect(held()).toEqual(answered);
    const after = await start("a", { ...file, limits: { callsPerMinute: 20 } });
    expect(held()).toEqual({ ...answered, limits: { callsPerMinute: 20 } });
    expect(await after.config()).toEqual(held());
  });

  it("a file that is empty while it is written in place removes nothing", async () => {
    const file = { limits: { callsPerMinute: 10 } };
    const node = await start("a", file, { deployed: false });
    writeFileSync(node.file, "");
    const stop = node.shared.follow({ reload: async () => {}, onReload: () => () => {} });
    await node.shared.settled();
    expect([held(), readFileSync(node.file, "utf8")]).toEqual([file, ""]);
    writeFileSync(node.file, JSON.stringify({ limits: { callsPerMinute: 20 } }));
    await expect
      .poll(async () => {
        await clock.advance(2000);
        await node.shared.settled();
        return held();
      })
      .toEqual({ limits: { callsPerMinute: 20 } });
    stop();
  });

  it("a file that is replaced while its node runs counts, also where another text stands for it", async () => {
    const file = { limits: { callsPerMinute: 10 } };
    const node = await start("a", file);
    await start("writes", file, { deployed: false });
    await start("writes", { ...file, tools: { deny: ["wipe"] } }, { deployed: false, fresh: false });
    let reloads = 0;
    const stop = node.shared.follow({ reload: async () => void (reloads += 1), onReload: () => () => {} });
    await node.shared.settled();
    expect([reloads, node.place.texts.size]).toEqual([1, 1]);
    writeFileSync(node.file, JSON.stringify({ limits: { callsPerMinute: 30 } }));
    await expect
      .poll(async () => {
        await clock.advance(100);
        await node.shared.settled();
        return held();
      })
      .toEqual({ limits: { callsPerMinute: 30 }, tools: { deny: ["wipe"] } });
    stop();
    // It is the base of the next one, so that what it no longer says goes.
    await start("a", { mcpServers: { one: OFF } });
    expect(held()).toEqual({ mcpServers: { one: OFF }, tools: { deny: ["wipe"] } });
  });

  it("a node that joins loses no guard to its cluster and takes none from it", async () => {
    const auth = { tokens: [{ token: "secret://env/HUB_TOKEN", user: "ops" }] };
    const [ruled, other] = [
      { ...OFF, tools: { deny: ["x"] } },
      { ...OFF, command: "other" },
    ];
    await start("a", { tools: { ask: ["drop"] }, mcpServers: { one: ruled, two: OFF } }, { deployed: false });
    const own = { http: { auth }, tools: { deny: ["wipe"] }, mcpServers: { one: other } };
    const joining = await start("b", own, { deployed: false });
    const all = {
      http: { auth },
      tools: { ask: ["drop"], deny: ["wipe"] },
      mcpServers: { one: { ...other, tools: { deny: ["x"] } }, two: OFF },
    };
    expect(held()).toEqual(all);
    expect(await joining.config()).toEqual(all);
    expect(joining.warnings.join()).toMatch(/now apply to all nodes: .*http/);
    for (const deployed of [true, false]) await start("empty", {}, { deployed });
    expect(held()).toEqual(all);
  });

  it("what does not load together is published by nobody, and what the others change holds on", async () => {
    const servers = (...ids: string[]): ConfigInput => ({
      limits: { servers: 2 },
      mcpServers: Object.fromEntries(ids.map((id) => [id, OFF])),
    });
    await start("a", servers("x"), { deployed: false });
    await start("b", servers("x"), { deployed: false });
    await start("a", servers("x", "a"), { deployed: false, fresh: false });
    const before = settings.text;
    const node = await start("b", servers("x", "b"), { deployed: false, fresh: false });
    expect(settings.text).toBe(before);
    expect(node.warnings.join()).toMatch(/mcpServers\.b in .* conflict with/);
    expect(await node.config()).toEqual(servers("x", "a"));
    expect(JSON.parse(readFileSync(node.file, "utf8"))).toEqual(servers("x", "b"));
    const stop = node.shared.follow({ reload: async () => {}, onReload: () => () => {} });
    await start("a", { ...servers("x", "a"), tools: { deny: ["wipe"] } }, { deployed: false, fresh: false });
    await node.shared.settled();
    expect(await node.config()).toMatchObject({ tools: { deny: ["wipe"] } });
    await start("a", { ...servers("a"), tools: { deny: ["wipe"] } }, { deployed: false, fresh: false });
    await node.shared.settled();
    expect(held()).toEqual({ ...servers("a", "b"), tools: { deny: ["wipe"] } });
    expect(node.warnings.filter((text) => text.includes("conflict with"))).toHaveLength(1);
    stop();
  });

  it("[whole-01d] a wrong entry stops its server on every node, and keeps no other change from them", async () => {
    const own = { deployed: false, fresh: false };
    await start("a", { mcpServers: { x: OFF } }, { deployed: false });
    await start("b", { mcpServers: { x: OFF } }, { deployed: false });
    // As someone without an editor that checks it would write it.
    const wrong = { ...OFF, timeout: "long" } as unknown as typeof OFF;
    await start("a", { mcpServers: { x: wrong } }, own);
    const node = await start("b", { mcpServers: { x: OFF, y: OFF } }, own);
    expect(held().mcpServers).toEqual({ x: wrong, y: OFF });
    expect((await node.config()).mcpServers).toEqual({ x: wrong, y: OFF });
    expect(node.warnings.join()).not.toContain("conflict with");
  });

  it("a reload that failed is done again, and told of once", async () => {
    await start("a", { limits: { callsPerMinute: 10 } }, { deployed: false });
    const node = await start("b", { limits: { callsPerMinute: 10 } }, { deployed: false });
    let [reloads, fails] = [0, true];
    const reload = async (): Promise<void> => {
      reloads += 1;
      if (fails) throw new ToolcribError("internal", "It cannot be loaded here.");
    };
    const stop = node.shared.follow({ reload, onReload: () => () => {} });
    await node.shared.settled();
    await start("a", { limits: { callsPerMinute: 20 } }, { deployed: false, fresh: false });
    await node.shared.settled();
    for (let round = 0; round < 3; round++) {
      await clock.advance(30_000);
      await node.shared.settled();
      await settle();
    }
    expect(reloads).toBeGreaterThan(2);
    expect(node.warnings).toEqual(["The config is not in sync with the other nodes: It cannot be loaded here."]);
    fails = false;
    await clock.advance(30_000);
    await node.shared.settled();
    const done = reloads;
    await clock.advance(60_000);
    await node.shared.settled();
    expect(reloads).toBe(done);
    stop();
  });

  it("plugins are the node's own", async () => {
    await start("a", { tools: { deny: ["wipe"] } }, { deployed: false });
    await start("a", { plugins: ["./only-here.mjs"], tools: { deny: ["drop"] } }, { deployed: false, fresh: false });
    expect(held()).toEqual({ tools: { deny: ["drop"] } });
  });
});
