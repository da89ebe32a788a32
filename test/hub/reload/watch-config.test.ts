import { describe, expect, it } from "vitest";
import { followConfig } from "../../../src/hub/reload/watch-config.ts";
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
    let reloaded = (): void => {};
    let files: string[] = [];
    const stop = followConfig(
      {
        config: () => ({ ...config, inCode: false, files }),
        onReload: (listener) => {
          reloaded = listener;
          return () => {};
        },
        reloadIfChanged: task("config"),
        watchSkills: (onChange) => {
          changeSkills = onChange;
          return () => {};
        },
        refreshSkills: task("skills"),
        followStore: (onChange) => {
          changeStore = onChange;
          return () => {};
        },
        refreshServers: task("servers"),
        warn: (message) => void warnings.push(message),
      },
      { clock },
    );
    files = ["/nowhere/toolcrib.json"];
    reloaded();
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
