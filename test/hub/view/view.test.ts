import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterEach, describe, expect, it } from "vitest";
import { createHub } from "../../../src/hub/create/create-hub.ts";
import type { Hub } from "../../../src/hub/hub.ts";
import type { View } from "../../../src/hub/view/view.ts";
import { ToolRegistry } from "../../../src/tools/tool-registry.ts";

let hub: Hub | undefined;
afterEach(async () => {
  await hub?.close();
  hub = undefined;
});

async function start(): Promise<Hub> {
  const registry = new ToolRegistry();
  const execute = async () => ({ content: [] });
  for (const name of ["one", "two"]) {
    registry.register({ name, description: name, parameters: { type: "object" }, execute });
  }
  const roles = Object.fromEntries(Array.from({ length: 70 }, (_, n) => [`r${n}`, { tools: { deny: ["two"] } }]));
  hub = await createHub({ roles }, { registry });
  return hub;
}

setFlagsFromString("--expose-gc");
// The flag gives the function to contexts that are made from now on.
const collect = runInNewContext("gc") as () => void;

const names = ({ tools }: View): string[] => tools.map(({ name }) => name);

describe("[gate-08e] views", () => {
  it("of roles that nothing names are one, with nothing in it", async () => {
    const hub = await start();
    const views = Array.from({ length: 500 }, (_, n) => hub.view(hub.openSession({ role: `invented-${n}` })));
    expect(new Set(views).size).toBe(1);
    expect(views[0]).toEqual({
      version: hub.view(hub.session).version,
      tools: [],
      resources: [],
      templates: [],
      prompts: [],
    });
    hub.registry.unregister("two");
    expect(hub.view(hub.openSession({ role: "invented-1" })).version).toBe(hub.view(hub.session).version);
  });

  it("of roles and of narrowed sessions are kept only so many, and those that went are the same again", async () => {
    const hub = await start();
    const own = hub.view(hub.session);
    const role = hub.openSession({ role: "r0" });
    const rules = { servers: ["local"] };
    const narrowed = hub.openSession({ rules });
    const before = [hub.view(role), hub.view(narrowed)];
    for (let n = 0; n < 200; n++) hub.view(hub.openSession({ rules: { servers: ["local", `${n}`] } }));
    // What clients choose drives out what others chose, and nothing else.
    expect(hub.view(role)).toBe(before[0]);
    expect(hub.view(hub.session)).toBe(own);
    expect(hub.view(narrowed)).not.toBe(before[1]);
    expect(hub.view(narrowed)).toEqual(before[1]);
    // Sessions that are narrowed in the same way share one.
    expect(hub.view(hub.openSession({ rules: { servers: ["local"] } }))).toBe(hub.view(narrowed));
    for (let n = 1; n < 70; n++) hub.view(hub.openSession({ role: `r${n}` }));
    expect(hub.view(role)).not.toBe(before[0]);
    expect(names(hub.view(role))).toEqual(["one"]);
  });

  it("can be collected when they went", async () => {
    const hub = await start();
    const gone: WeakRef<View>[] = [];
    for (let n = 0; n < 300; n++) {
      const session = hub.openSession({ rules: { servers: ["local", `${n}`] } });
      gone.push(new WeakRef(hub.view(session)));
      session.close();
    }
    await expect
      .poll(() => {
        collect();
        return gone.filter((view) => view.deref() !== undefined).length;
      })
      .toBeLessThanOrEqual(64);
  });
});

describe("[gate-08e] decisions", () => {
  it("stay right when they are no longer remembered", async () => {
    const hub = await start();
    const allowed = hub.openSession({ rules: { servers: ["local"] } });
    const denied = hub.openSession({ rules: { servers: ["elsewhere"] } });
    for (let round = 0; round < 2; round++) {
      expect(await hub.call({ session: allowed, name: "one" })).toMatchObject({ ok: true });
      expect(await hub.call({ session: denied, name: "one" })).toMatchObject({ ok: false });
      expect(await hub.call({ session: hub.openSession({ role: "invented" }), name: "one" })).toMatchObject({
        ok: false,
      });
      for (let n = 0; n < 100; n++) hub.view(hub.openSession({ rules: { servers: [String(n)] } }));
    }
    expect(hub.explain("one", hub.openSession({ role: "other" }))?.decision.rule).toMatchObject({ pattern: "other" });
  });
});
