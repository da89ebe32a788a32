import { afterEach, describe, expect, it } from "vitest";
import { createHub } from "../../../src/hub/create/create-hub.ts";
import type { Hub } from "../../../src/hub/hub.ts";
import type { ConfigInput } from "../../../src/model/config.ts";
import type { Session } from "../../../src/sessions/session.ts";
import { ToolRegistry } from "../../../src/tools/tool-registry.ts";
import { everything, misbehaving } from "../../support/servers.ts";

let hub: Hub | undefined;
afterEach(async () => {
  await hub?.close();
  hub = undefined;
});

async function start(config: ConfigInput): Promise<Hub> {
  const registry = new ToolRegistry();
  registry.register({
    name: "here",
    description: "Is here.",
    parameters: { type: "object" },
    execute: async () => ({ content: [{ type: "text", text: "here" }] }),
  });
  hub = await createHub(config, { registry });
  return hub;
}

function sources(hub: Hub, session: Session): string[] {
  const { tools, resources, templates, prompts } = hub.view(session);
  return [...new Set([...tools, ...resources, ...templates, ...prompts].map(({ origin }) => origin.source))].toSorted();
}

describe("[gate-05b] a session that asks for a part of the hub", () => {
  it("sees tools, resources, templates and prompts of that part only; the rest does not exist", async () => {
    const hub = await start({ mcpServers: { every: { ...everything(), tags: ["demo"] }, files: misbehaving("ok") } });
    expect(sources(hub, hub.session)).toEqual(["every", "files", "local"]);
    const files = hub.openSession({ owner: false, rules: { servers: ["files"] } });
    expect(sources(hub, files)).toEqual(["files"]);
    const demo = hub.openSession({ owner: false, rules: { tags: ["demo"] } });
    expect(sources(hub, demo)).toEqual(["every"]);
    expect(hub.view(demo)).toEqual({ ...hub.view(demo), templates: expect.arrayContaining([expect.anything()]) });

    const [resource] = hub.view(demo).resources;
    expect(await hub.read({ session: demo, uri: resource?.name ?? "" })).toMatchObject({ ok: true });
    for (const outcome of [
      await hub.read({ session: files, uri: resource?.name ?? "" }),
      await hub.call({ session: files, name: "here" }),
      await hub.call({ session: files, name: "every__echo", arguments: { message: "x" } }),
      await hub.prompt({ session: files, name: hub.view(demo).prompts[0]?.name ?? "" }),
    ]) {
      expect(outcome).toMatchObject({ ok: false, error: { code: "not_found" } });
    }
    expect(await hub.call({ session: hub.openSession({ rules: { servers: ["local"] } }), name: "here" })).toMatchObject(
      {
        ok: true,
      },
    );
    expect(hub.explain("here", files)?.decision).toMatchObject({ rule: { level: "session", list: "servers" } });
  });

  it("is not told of a server outside it that is down", async () => {
    const hub = await start({ mcpServers: { gone: { command: "/no/such/program" }, files: misbehaving("ok") } });
    const files = hub.openSession({ owner: false, rules: { servers: ["files"] } });
    expect(await hub.call({ session: files, name: "gone__x" })).toMatchObject({
      ok: false,
      error: { code: "not_found" },
    });
    expect(await hub.call({ session: hub.openSession({ owner: false }), name: "gone__x" })).toMatchObject({
      ok: false,
      error: { code: "server_unavailable" },
    });
  });

  it("[gate-14a] shares its view with every session that has the same rules", async () => {
    const hub = await start({});
    const rules = Object.freeze({ servers: ["local"] });
    const [first, second] = [hub.openSession({ rules }), hub.openSession({ rules })];
    expect(hub.view(first)).toBe(hub.view(second));
    expect(hub.view(hub.openSession({ rules: { servers: [] } })).tools).toEqual([]);
    expect(hub.view(first).tools.map(({ name }) => name)).toEqual(["here"]);
  });
});
