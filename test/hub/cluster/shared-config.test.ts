import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { LoadedConfig } from "../../../src/model/loaded-config.ts";
import { loadConfig } from "../../../src/config/load-config.ts";
import { SharedConfig } from "../../../src/hub/cluster/shared-config.ts";
import { systemClock } from "../../../src/base/clock.ts";
import { openStore } from "../../../src/store/open-store.ts";
import { type Bench, missingParts, startBench, type TestCluster, type TestNode } from "./shared-bench.ts";
import { eventually } from "../../support/eventually.ts";

const OFF = { command: "nothing", enabled: false };
const missing = missingParts();

describe.skipIf(missing !== undefined)("[scale-08a] the config files of two nodes", () => {
  let bench: Bench;
  let cluster: TestCluster;
  beforeAll(async () => {
    bench = await startBench();
  });
  afterAll(() => bench.stop());
  beforeEach(async () => {
    cluster = await bench.cluster();
  });
  afterEach(() => cluster.close());

  const limitOf = ({ hub }: TestNode): number | undefined => hub.config.config.limits.callsPerMinute;
  const serversOf = ({ hub }: TestNode): string[] => hub.config.servers.map(({ id }) => id).toSorted();

  it("a change on one holds on the other within a second, and comments stay", async () => {
    const one = await cluster.start("one", { limits: { callsPerMinute: 10 } });
    const two = await cluster.start("two", { limits: { callsPerMinute: 10 }, http: { port: 4711 } });
    expect(two.warnings).toEqual([]);
    const text = readFileSync(two.file, "utf8");
    writeFileSync(two.file, text.replace("{", "{\n  // Ours."));
    writeFileSync(one.file, readFileSync(one.file, "utf8").replace('"callsPerMinute": 10', '"callsPerMinute": 20'));
    await eventually(() => limitOf(one) === 20, "the change is taken up where it was made");
    const from = performance.now();
    await eventually(() => limitOf(two) === 20, "and at the other node");
    const took = performance.now() - from;
    process.stderr.write(`A change of the config took ${Math.round(took)} ms to the other node.\n`);
    expect(readFileSync(two.file, "utf8")).toContain("// Ours.");
    expect(two.hub.config.config.http.port).toBe(4711);
  });

  it("changes of both at once are both kept", async () => {
    const one = await cluster.start("one", { mcpServers: { base: OFF } });
    const two = await cluster.start("two", { mcpServers: { base: OFF } });
    one.write({ mcpServers: { base: OFF, a: OFF } });
    two.write({ mcpServers: { base: OFF, b: OFF } });
    for (const node of [one, two]) {
      await eventually(() => serversOf(node).length === 3, "it has both");
      await eventually(() => Object.keys(node.read().mcpServers ?? {}).length === 3, "and so has its file");
      expect(serversOf(node)).toEqual(["a", "b", "base"]);
    }
  });

  it("an answer that holds for good is taken over, as is a server that was added through a hub", async () => {
    const one = await cluster.start("one", { tools: { ask: ["wipe"] } });
    const two = await cluster.start("two", { tools: { ask: ["wipe"] } });
    const session = one.hub.openSession({ onAsk: () => "always" });
    expect(await one.hub.call({ session, name: "wipe" })).toMatchObject({ ok: true });
    await eventually(
      () => two.hub.config.config.tools.ask?.includes("!=tool:wipe") === true,
      "the rule has its exception",
    );
    expect(await two.hub.call({ session: two.hub.openSession(), name: "wipe" })).toMatchObject({ ok: true });
    await one.hub.servers.add("added", OFF);
    await eventually(() => serversOf(two).includes("added"), "the added server");
  });

  it("a node that was away takes what changed, and gives what was changed in its own file", async () => {
    const one = await cluster.start("one", { limits: { callsPerMinute: 10, servers: 50 } });
    const two = await cluster.start("two", { limits: { callsPerMinute: 10, servers: 50 } });
    await two.hub.close();
    one.write({ limits: { callsPerMinute: 20, servers: 50 } });
    await eventually(() => limitOf(one) === 20, "one takes it up");
    await eventually(
      async () =>
        (await one.hub.internals.store?.settings.get("cluster.config"))?.includes('"callsPerMinute":20') === true,
      "told",
    );
    two.write({ limits: { callsPerMinute: 10, servers: 60 } });
    const again = await cluster.start("two", null);
    expect(again.hub.config.config.limits).toMatchObject({ callsPerMinute: 20, servers: 60 });
    expect(again.read().limits).toEqual({ callsPerMinute: 20, servers: 60 });
    await eventually(() => one.hub.config.config.limits.servers === 60, "one takes the other");
  });

  it("a new node gets what its file lacks, and what its file says otherwise counts for all, and is named", async () => {
    const one = await cluster.start("one", { limits: { callsPerMinute: 10 }, mcpServers: { base: OFF } });
    const two = await cluster.start("two", { limits: { callsPerMinute: 99 }, tools: { deny: ["wipe"] } });
    expect([limitOf(two), serversOf(two)]).toEqual([99, ["base"]]);
    expect(two.warnings.join()).toMatch(/now apply to all nodes: limits\.callsPerMinute, tools/);
    expect(two.warnings.join()).toMatch(/the cluster's config applies to mcpServers/);
    expect(readFileSync(`${two.home}/cluster/config.before`, "utf8")).toContain("99");
    await eventually(() => limitOf(one) === 99, "the others take it over");
    expect(one.hub.config.config.tools.deny).toEqual(["wipe"]);
  });

  it("what holds a credential in plain text stays on its node", async () => {
    const secret = { ...OFF, env: { API_TOKEN: "correct-horse-battery-staple" } };
    const one = await cluster.start("one", { mcpServers: { secret, open: OFF } });
    const two = await cluster.start("two", {});
    expect(serversOf(two)).toEqual(["open"]);
    expect(one.warnings.join()).toMatch(/plain text.*mcpServers\.secret/);
    expect(await one.hub.internals.store?.settings.get("cluster.config")).not.toContain("correct-horse");
    two.write({ mcpServers: { open: OFF, more: OFF } });
    await eventually(() => serversOf(one).join() === "more,open,secret", "the other changes do not take it away");
    one.write({ mcpServers: { secret: { ...OFF, env: { API_TOKEN: "secret://env/T" } }, open: OFF, more: OFF } });
    await eventually(() => serversOf(two).includes("secret"), "with a reference it is everybody's");
  });

  it("an imported skill can be read on a node whose home never had its files", async () => {
    const [one, two] = [await cluster.start("one", {}), await cluster.start("two", {})];
    const folder = join(dirname(one.file), "greet");
    mkdirSync(join(folder, "scripts"), { recursive: true });
    writeFileSync(join(folder, "SKILL.md"), "---\nname: greet\ndescription: Greets people.\n---\nSay hello.\n");
    writeFileSync(join(folder, "scripts", "hello.sh"), "#!/bin/sh\necho hello\n", { mode: 0o755 });
    await one.hub.skills.import({ path: folder, force: false, dryRun: false });
    await eventually(() => two.hub.skills.list().some(({ name }) => name === "greet"), "known at the other node");
    const [{ id } = { id: "" }] = two.hub.skills.list();
    const read = await two.hub.read({ uri: "skill://greet/scripts/hello.sh" });
    expect(JSON.stringify(read)).toContain("echo hello");
    expect(two.warnings).toEqual([]);
    await two.hub.skills.remove(id);
    await eventually(() => one.hub.skills.list().length === 0, "removed at the first");
  });

  it("a file that cannot be written is left as it is, and what the others have holds all the same", async () => {
    const one = await cluster.start("one", { limits: { callsPerMinute: 10 } });
    const file = cluster.fileOf("two");
    mkdirSync(dirname(file), { recursive: true });
    const text = JSON.stringify({ limits: { callsPerMinute: 10 }, http: { port: 4711 } });
    writeFileSync(file, text);
    const store = await openStore({ home: "/nowhere", url: cluster.url });
    if (store === undefined) throw new Error("no store");
    const warnings: string[] = [];
    const begin = async (): Promise<LoadedConfig> => {
      const place = { env: {}, cwd: "/", home: cluster.homeOf("two"), texts: new Map<string, string>() };
      const refuse = async (): Promise<never> => {
        throw Object.assign(new Error("read-only file system"), { code: "EROFS" });
      };
      const warn = (message: string): void => void warnings.push(message);
      const shared = new SharedConfig({
        store,
        file,
        place,
        clock: systemClock,
        edit: refuse,
        isWritable: async () => false,
        warn,
      });
      return shared.begin(await loadConfig({ ...place, file }));
    };
    expect((await begin()).config.limits.callsPerMinute).toBe(10);
    one.write({ limits: { callsPerMinute: 20 } });
    await eventually(
      async () => (await store.settings.get("cluster.config"))?.includes('"callsPerMinute":20') === true,
      "told",
    );
    for (let round = 0; round < 2; round++) {
      expect((await begin()).config).toMatchObject({ limits: { callsPerMinute: 20 }, http: { port: 4711 } });
    }
    expect(warnings.join()).toContain("cannot be written");
    expect(readFileSync(file, "utf8")).toBe(text);
    expect(await store.settings.get("cluster.config")).toContain("20");
    await store.close();
  });

  it("a config that does not load changes nothing anywhere", async () => {
    const one = await cluster.start("one", { limits: { callsPerMinute: 10 } });
    const two = await cluster.start("two", { limits: { callsPerMinute: 10 } });
    writeFileSync(one.file, readFileSync(one.file, "utf8").replace('"callsPerMinute": 10', '"callsPerMinute": -1'));
    await eventually(() => one.warnings.join().includes("is not used"), "one says so");
    two.write({ limits: { callsPerMinute: 30 } });
    await eventually(
      async () =>
        (await two.hub.internals.store?.settings.get("cluster.config"))?.includes('"callsPerMinute":30') === true,
      "two goes on",
    );
    expect(limitOf(one)).toBe(10);
    writeFileSync(one.file, readFileSync(one.file, "utf8").replace('"callsPerMinute": -1', '"callsPerMinute": 10'));
    await eventually(() => limitOf(one) === 30, "once it loads again it is in step");
  });
});
