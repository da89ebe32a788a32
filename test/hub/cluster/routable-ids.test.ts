import { randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import { RoutableIds, SessionKeys, type SessionKeysOptions } from "../../../src/hub/cluster/routable-ids.ts";
import { SealedSecrets } from "../../../src/secrets/sealed-secrets.ts";
import { FakeClock, settle } from "../../support/fake-clock.ts";
import { MemorySettings } from "./memory-settings.ts";

const DAY = 24 * 3_600_000;

class Nodes {
  readonly clock = new FakeClock();
  readonly settings = new MemorySettings();
  readonly warnings: string[] = [];
  readonly living = new Set<string>();
  isUp = true;

  keys(options: Partial<SessionKeysOptions> = {}): Promise<SessionKeys> {
    const { clock, settings, warnings } = this;
    const warn = (message: string): void => void warnings.push(message);
    return SessionKeys.open({ cluster: "c", store: settings.store, clock, idleMs: 1000, warn, ...options });
  }

  ids(name: string, keys: SessionKeys): RoutableIds {
    this.living.add(name);
    const isUp = (): boolean => this.isUp;
    return new RoutableIds(keys, {
      node: { id: name, name, facts: {} },
      nodes: () => [...this.living].map((id) => ({ id, name: id, facts: {} })),
      get isUp() {
        return isUp();
      },
    });
  }
}

function sealing(key: Buffer, clock: FakeClock): SealedSecrets {
  const values = { get: async () => undefined, put: async () => {}, remove: async () => false };
  return new SealedSecrets({ values, clock, key: { existing: async () => key, made: async () => key } });
}

describe("[scale-07a] ids that name their owner", () => {
  it("are read by every node, are never alike, and say nothing in the clear", async () => {
    const nodes = new Nodes();
    const [a, b] = [nodes.ids("node-a", await nodes.keys()), nodes.ids("node-b", await nodes.keys())];
    const id = a.issue("mcp");
    expect(id).toMatch(/^[A-Za-z0-9_-]{44,70}$/);
    expect(Buffer.from(id, "base64url").toString("latin1")).not.toContain("node-a");
    expect(a.issue("mcp")).not.toBe(id);
    expect(await a.find("mcp", id)).toEqual({ here: id });
    expect(await b.find("mcp", id)).toEqual({ node: "node-a" });
    expect(await a.find("rest", a.issue("rest", "local-name"))).toEqual({ here: "local-name" });
  });

  it("are unknown if forged, of another kind or another cluster", async () => {
    const nodes = new Nodes();
    const keys = await nodes.keys();
    const [a, b] = [nodes.ids("node-a", keys), nodes.ids("node-b", keys)];
    const id = a.issue("mcp");
    for (let at = 0; at < id.length; at++) {
      const other = id[at] === "A" ? "B" : "A";
      expect(await b.find("mcp", id.slice(0, at) + other + id.slice(at + 1)), `character ${at}`).toBeUndefined();
    }
    for (const kind of ["sse", "rest", "result", "round"] as const) expect(await b.find(kind, id)).toBeUndefined();
    for (const text of [
      "",
      "x",
      id.slice(0, -4),
      `${id}A`,
      `${id}AAAA`,
      "é".repeat(60),
      "A".repeat(60),
      "A".repeat(5000),
    ]) {
      expect(await b.find("mcp", text)).toBeUndefined();
    }
    const foreign = nodes.ids("node-b", await nodes.keys({ cluster: "another" }));
    expect(await foreign.find("mcp", id)).toBeUndefined();
  });

  it("are unknown once their owner has gone, but not while nobody can say who is alive", async () => {
    const nodes = new Nodes();
    const keys = await nodes.keys();
    const [a, b] = [nodes.ids("node-a", keys), nodes.ids("node-b", keys)];
    const id = a.issue("mcp");
    nodes.living.delete("node-a");
    expect(await b.find("mcp", id)).toBeUndefined();
    nodes.isUp = false;
    expect(await b.find("mcp", id)).toEqual({ node: "node-a" });
  });
});

describe("[scale-07a] the ring of keys", () => {
  it("is one for nodes that start at once, with one secret for all", async () => {
    const nodes = new Nodes();
    let rival: SessionKeys | undefined;
    nodes.settings.meanwhile = async () => (rival = await nodes.keys());
    const keys = await nodes.keys();
    expect(keys.newest.id).toBe(rival?.newest.id);
    expect(keys.secret).toEqual(rival?.secret);
    expect(keys.secret).toHaveLength(32);
  });

  it("gets a new key each day; older ones hold for as long as a session may need them", async () => {
    const nodes = new Nodes();
    const keys = await nodes.keys();
    const ids = nodes.ids("node-a", keys);
    const old = ids.issue("mcp");
    await nodes.clock.advance(DAY);
    ids.issue("mcp");
    await settle();
    const fresh = ids.issue("mcp");
    expect(fresh.slice(0, 4)).not.toBe(old.slice(0, 4));
    expect(await ids.find("mcp", old)).toEqual({ here: old });
    await nodes.clock.advance(31 * DAY);
    expect(await ids.find("mcp", old)).toBeUndefined();
    ids.issue("mcp");
    await settle();
    expect(nodes.settings.text).not.toContain(`"${old.slice(0, 4)}"`);
  });

  it("is read again for a key that is not known, and not for each of many", async () => {
    const nodes = new Nodes();
    nodes.settings.tells = false;
    const [first, second] = [await nodes.keys(), await nodes.keys()];
    const [a, b] = [nodes.ids("node-a", first), nodes.ids("node-b", second)];
    await nodes.clock.advance(DAY);
    a.issue("mcp");
    await settle();
    const id = a.issue("mcp");
    expect(await b.find("mcp", id)).toEqual({ node: "node-a" });
    const { reads } = nodes.settings;
    for (let count = 0; count < 50; count++) await b.find("mcp", `zz${count + 10}${id.slice(4)}`);
    expect(nodes.settings.reads).toBe(reads);
    await nodes.clock.advance(1000);
    await b.find("mcp", `zzzz${id.slice(4)}`);
    expect(nodes.settings.reads).toBe(reads + 1);
  });

  it("goes on with what it has while the store is away", async () => {
    const nodes = new Nodes();
    const ids = nodes.ids("node-a", await nodes.keys());
    const old = ids.issue("mcp");
    await nodes.clock.advance(2 * DAY);
    nodes.settings.isAway = true;
    const id = ids.issue("mcp");
    await settle();
    expect(await ids.find("mcp", id)).toEqual({ here: id });
    expect(await ids.find("mcp", `zzzz${id.slice(4)}`)).toBeUndefined();
    expect(nodes.warnings).toEqual([expect.stringContaining("could not be renewed")]);
    nodes.settings.isAway = false;
    await nodes.clock.advance(60_000);
    ids.issue("mcp");
    await settle();
    expect(ids.issue("mcp").slice(0, 4)).not.toBe(old.slice(0, 4));
  });

  it("is sealed where there is a `secrets.key`, and refused to a node that has another one or none", async () => {
    const nodes = new Nodes();
    const key = randomBytes(32);
    const sealed = sealing(key, nodes.clock);
    const keys = await nodes.keys({ sealed });
    expect(nodes.settings.text).not.toContain(keys.newest.bytes.toString("base64"));
    expect(nodes.settings.text).not.toContain(Buffer.from(keys.secret).toString("base64"));
    expect((await nodes.keys({ sealed: sealing(key, nodes.clock) })).newest.bytes).toEqual(keys.newest.bytes);
    const before = nodes.settings.text;
    for (const other of [undefined, sealing(randomBytes(32), nodes.clock)]) {
      await nodes.clock.advance(DAY);
      await expect(nodes.keys({ sealed: other })).rejects.toMatchObject({
        code: "invalid_config",
        hint: expect.stringContaining("same `secrets.key`"),
      });
    }
    expect(nodes.settings.text).toBe(before);
    const plain = new Nodes();
    const open = await plain.keys();
    const later = await plain.keys({ sealed });
    expect(later.newest.bytes).toEqual(open.newest.bytes);
  });
});
