/** A server that was given up, as a program that follows the events sees it. */
import { expect, it } from "vitest";
import { createHub } from "../../../../src/hub/create/create-hub.ts";
import { ConfigSchema } from "../../../../src/model/config.ts";
import { misbehaving } from "../../../support/servers.ts";
import { apiScene } from "../api/api-setup.ts";

it("[whole-09a] counts no tools once it is down, and offers none after the grace period, which is 30 s", async () => {
  expect(ConfigSchema.parse({}).limits.graceMs).toBe(30_000);
  const hub = await createHub({
    mcpServers: { gone: { ...misbehaving("ok"), restart: false } },
    limits: { graceMs: 300 },
  });
  try {
    expect(hub.servers.list()[0]).toMatchObject({ state: "ready", toolCount: hub.tools().length });
    const downAt = new Promise<number>((resolve) => {
      hub.on("server", ({ info }) => info.state === "failed" && resolve(hub.servers.list()[0]?.toolCount ?? -1));
    });
    await hub.call({ name: "gone__exit", arguments: { code: 3 } });
    expect(await downAt).toBe(0);
    await expect.poll(() => hub.tools()).toEqual([]);
  } finally {
    await hub.close();
  }
});

it("[whole-09a] counts no tools while it is started again", async () => {
  const restart = { max: 3, initialDelay: 10 };
  const hub = await createHub({ mcpServers: { back: { ...misbehaving("ok"), restart } } });
  try {
    const seen: { readonly state: string; readonly toolCount: number }[] = [];
    hub.on("server", ({ info: { state, toolCount } }) => seen.push({ state, toolCount }));
    await hub.call({ name: "back__exit", arguments: { code: 3 } });
    await expect.poll(() => seen.some(({ state }) => state === "ready")).toBe(true);
    expect(seen).toContainEqual({ state: "connecting", toolCount: 0 });
    expect(seen.filter(({ state, toolCount }) => state !== "ready" && toolCount > 0)).toEqual([]);
  } finally {
    await hub.close();
  }
});

it("[whole-09b] mcp.server.changed carries the new state", async () => {
  const scene = await apiScene({ servers: { gone: { ...misbehaving("ok"), restart: false } } });
  try {
    const talk = await scene.connect("admin");
    await scene.hub.call({ name: "gone__exit", arguments: { code: 3 } });
    const changed = await talk.until((frame) => JSON.stringify(frame).includes('"state":"failed"'));
    expect(changed).toMatchObject({
      type: "mcp.server.changed",
      serverId: "gone",
      state: "failed",
      server: { state: "failed", status: "error", toolCount: 0 },
    });
  } finally {
    await scene.close();
  }
});
