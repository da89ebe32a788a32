import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { SharedMap } from "../../../src/cluster/cluster.ts";
import { PageLogins } from "../../../src/doors/http/page-logins.ts";
import type { Caller } from "../../../src/model/caller.ts";
import type { Clock } from "../../../src/base/clock.ts";
import { Emitter } from "../../../src/base/emitter.ts";
import type { JsonObject } from "../../../src/model/json.ts";

const ADMIN: Caller = { key: "token", owner: true, scopes: new Set(["admin"]) };
const HOUR = 3_600_000;

/** A node's side of maps that are in memory. It can be cut off, deaf for what others do, or without answers. */
class NodeMaps {
  isUp = true;
  isDeaf = false;
  isUnanswered = false;
  readonly #maps: Map<string, Map<string, JsonObject>>;
  readonly #changes: Emitter<{ change: readonly [map: string, key: string] }>;

  constructor(maps: Map<string, Map<string, JsonObject>>, changes: Emitter<{ change: readonly [string, string] }>) {
    this.#maps = maps;
    this.#changes = changes;
  }

  async map(name: string): Promise<SharedMap> {
    const values = this.#maps.get(name) ?? new Map<string, JsonObject>();
    this.#maps.set(name, values);
    const heard = new Emitter<{ change: string }>();
    const copy = new Map(values);
    this.#changes.on("change", ([map, key]) => {
      if (map !== name || this.isDeaf) return;
      const value = values.get(key);
      if (value === undefined) copy.delete(key);
      else copy.set(key, value);
      heard.emit("change", key);
    });
    const write = async <Result>(act: () => Result, key: string): Promise<Result> => {
      if (!this.isUp) throw new Error("away");
      const result = act();
      this.#changes.emit("change", [name, key]);
      if (this.isUnanswered) throw new Error("no answer");
      return result;
    };
    // Of a map no more is used here.
    return {
      get: (key: string) => copy.get(key),
      put: (key: string, value: JsonObject) => write(() => void values.set(key, value), key),
      renew: (key: string, value: JsonObject) =>
        write(() => values.has(key) && values.set(key, value) !== undefined, key),
      take: (key: string) => write(() => values.delete(key), key),
      onChange: (listener: (key: string) => void) => heard.on("change", listener),
    } as unknown as SharedMap;
  }
}

async function setUp() {
  const time = { now: 1_000_000_000 };
  const clock: Clock = { now: () => time.now, after: () => () => {} };
  const maps = new Map<string, Map<string, JsonObject>>();
  const changes = new Emitter<{ change: readonly [string, string] }>();
  const node = async () => {
    const cluster = new NodeMaps(maps, changes);
    const logins = new PageLogins(clock);
    await logins.share(cluster);
    onTestFinished(() => logins.stopSharing());
    return { cluster, logins };
  };
  return { time, node, a: await node(), b: await node() };
}

describe("[scale-07b] logins of a browser at several nodes", () => {
  it("end everywhere, although nobody could be told when they ended", async () => {
    const { a, b } = await setUp();
    const keys = await a.logins.open(ADMIN);
    const session = await a.logins.find(keys);
    expect(await b.logins.find(keys)).toBeDefined();
    a.cluster.isUp = false;
    await a.logins.end(session ?? expect.fail("no session"));
    expect(await a.logins.find(keys)).toBeUndefined();
    expect(await b.logins.find(keys)).toBeDefined();
    a.cluster.isUp = true;
    await vi.waitFor(async () => expect(await b.logins.find(keys)).toBeUndefined(), { timeout: 60_000 });
  });

  it("do not come back when a node that has not heard of their end uses them", async () => {
    const { time, node, a, b } = await setUp();
    const keys = await a.logins.open(ADMIN);
    expect(await b.logins.find(keys)).toBeDefined();
    b.cluster.isDeaf = true;
    await a.logins.end((await a.logins.find(keys)) ?? expect.fail("no session"));
    time.now += HOUR;
    expect(await b.logins.find(keys)).toBeDefined();
    expect(await (await node()).logins.find(keys)).toBeUndefined();
  });

  it("are open at a node where nobody used them for long, while another is used", async () => {
    const { time, a, b } = await setUp();
    const keys = await a.logins.open(ADMIN);
    for (let hour = 0; hour < 13; hour++) {
      time.now += HOUR;
      expect(await b.logins.find(keys)).toBeDefined();
    }
    expect(await a.logins.find(keys)).toBeDefined();
  });

  it("begin once with a link, also if nobody knows whether the others were told of it", async () => {
    const { a, b } = await setUp();
    a.cluster.isUnanswered = true;
    const code = a.logins.issueCode();
    a.cluster.isUnanswered = false;
    expect(await b.logins.redeem(code)).toMatchObject({ owner: true });
    expect(await a.logins.redeem(code)).toBeUndefined();
    a.cluster.isUp = false;
    const own = a.logins.issueCode();
    expect([await a.logins.redeem(own), await a.logins.redeem(own).catch(() => undefined)]).toEqual([
      expect.objectContaining({ owner: true }),
      undefined,
    ]);
  });
});
