import { describe, expect, it } from "vitest";
import { watchConfig } from "../../../src/hub/reload/watch-config.ts";
import { Emitter } from "../../../src/base/emitter.ts";
import type { HubEvents } from "../../../src/hub/hub-events.ts";
import { ToolcribError } from "../../../src/model/errors.ts";
import { loadConfig } from "../../../src/config/load-config.ts";
import { FakeClock, settle } from "../../support/fake-clock.ts";

describe("[scale-09d] changes that come while the store is away", () => {
  it("are taken over once it is back, and told of once", async () => {
    const clock = new FakeClock();
    const config = await loadConfig({ config: {}, env: {}, cwd: "/", home: "/nowhere" });
    const done = { config: 0, servers: 0, skills: 0 };
    const warnings: string[] = [];
    let isAway = true;
    const task = (name: keyof typeof done) => async (): Promise<void> => {
      if (isAway) throw new ToolcribError("server_unavailable", "The store is away.");
      done[name] += 1;
    };
    let changeStore: (change: { readonly topic: string }) => void = () => {};
    let changeSkills = (): void => {};
    let files: string[] = [];
    const events = new Emitter<HubEvents>();
    events.on("warning", ({ message }) => warnings.push(message));
    const stop = watchConfig({
      current: {
        get config() {
          return { ...config, inCode: false, files };
        },
      },
      reloader: {
        reloadIfChanged: task("config"),
        refreshSkills: task("skills"),
        refreshServers: task("servers"),
      },
      events,
      userSkills: {
        watch: (_config, onChange) => {
          changeSkills = onChange;
          return () => {};
        },
      },
      store: {
        follow: (onChange) => {
          changeStore = onChange as typeof changeStore;
          return () => {};
        },
      },
      clock,
    });
    files = ["/nowhere/toolcrib.json"];
    const report = { added: [], removed: [], changed: [], kept: [], settings: [], needsRestart: [] };
    events.emit("reload", { report });
    changeStore({ topic: "servers" });
    changeSkills();
    await settle();
    await new Promise(setImmediate);
    for (let round = 0; round < 5; round++) {
      await clock.advance(20_000);
      await settle();
    }
    expect(warnings).toHaveLength(3);
    isAway = false;
    for (let round = 0; round < 3; round++) {
      await clock.advance(30_000);
      await settle();
    }
    expect(done).toEqual({ config: 1, servers: 1, skills: 1 });
    isAway = true;
    changeSkills();
    await settle();
    stop();
    isAway = false;
    await clock.advance(60_000);
    expect(done.skills).toBe(1);
  });
});
