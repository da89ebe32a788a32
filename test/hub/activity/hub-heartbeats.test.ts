import { describe, expect, it } from "vitest";
import { HubHeartbeats } from "../../../src/hub/activity/housekeeping.ts";
import type { Settings } from "../../../src/store/store.ts";
import { FakeClock } from "../../support/fake-clock.ts";

/** Above what any system gives out. */
const NO_PROCESS = 2 ** 30;

function scene(kind: "sqlite" | "postgres") {
  const kept = new Map<string, string>();
  const settings: Settings = {
    get: async (key) => kept.get(key),
    set: async (key, value) => void kept.set(key, value),
    setOnce: async (key, value) => kept.get(key) ?? (kept.set(key, value), value),
    exchange: async (key, before, after) => kept.get(key) === before && (kept.set(key, after), true),
    remove: async (key) => kept.delete(key),
  };
  const clock = new FakeClock();
  const problems: unknown[] = [];
  const hub = (id: string): HubHeartbeats =>
    new HubHeartbeats({ store: { kind, settings }, hub: id, clock, onProblem: (error) => problems.push(error) });
  const note = (id: string, pid: number): unknown => kept.set(`hub.${id}`, JSON.stringify({ pid, at: clock.now() }));
  return { kept, clock, hub, note, problems };
}

describe("living hubs", () => {
  it.each(["sqlite", "postgres"] as const)("say so again and again, and no more when they end: %s", async (kind) => {
    const { clock, hub, kept, problems } = scene(kind);
    const [one, two] = [hub("one"), hub("two")];
    await one.begin();
    await two.begin();
    await clock.advance(3_600_000);
    expect(await one.among(["one", "two", "two", "never-heard-of"])).toEqual(["one", "two"]);
    await two.end();
    expect(await one.among(["two"])).toEqual(["one"]);
    await clock.advance(3_600_000);
    expect([...kept.keys()]).toEqual(["hub.one"]);
    expect(problems).toEqual([]);
  });

  it("are known to be dead by their process, where all are on one machine", async () => {
    const { hub, note } = scene("sqlite");
    note("dead", NO_PROCESS);
    note("alive", process.pid);
    expect(await hub("one").among(["dead", "alive"])).toEqual(["one", "alive"]);
  });

  it("are known to be dead by their silence, where they are on several", async () => {
    const { hub, note, clock, kept } = scene("postgres");
    note("elsewhere", NO_PROCESS);
    kept.set("hub.odd", "{");
    const one = hub("one");
    expect(await one.among(["elsewhere", "odd"])).toEqual(["one", "elsewhere"]);
    await clock.advance(91_000);
    expect(await one.among(["elsewhere"])).toEqual(["one"]);
    await one.forget(["elsewhere", "odd"]);
    expect(kept.size).toBe(0);
  });
});
