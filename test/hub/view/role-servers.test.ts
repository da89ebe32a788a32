import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { ask, ReloadPlace, toolNames } from "../reload/reload-place.ts";

vi.setConfig({ testTimeout: 60_000 });

describe("[whole-02e] a server that a role has in the place of the hub's", () => {
  it("keeps its names for an agent of an openclaw.json, so that what names its tools reaches the agent's own", async () => {
    const place = new ReloadPlace();
    const file = join(place.dir, "openclaw.json");
    const pages = { ...place.server("shared", { tools: ["who", "a.b"] }), toolPrefix: "pg" };
    place.write(
      JSON.stringify({
        mcp: { servers: { notes: place.server("notes"), pages } },
        agents: {
          list: [
            { id: "ops", mcp: { servers: { pages: place.server("own", { tools: ["who", "a.b", "more"] }) } } },
            { id: "main" },
          ],
        },
      }),
      file,
    );
    const hub = await place.open(file);
    const [ops, main] = [hub.openSession({ role: "ops" }), hub.openSession({ role: "main" })];
    const shared = toolNames(hub, main);
    expect(shared).toEqual(["notes__who", "pg__who", "pg__a-b"]);
    expect(toolNames(hub, ops).toSorted()).toEqual([...shared, "pg__more"].toSorted());
    expect(await ask(hub, "pg__who", ops)).toContain("own ");
    expect(await ask(hub, "pg__who", main)).toContain("shared ");
    expect(await ask(hub, "pg__a-b", ops)).toContain("own ");
    // The owner sees both, so they have two names.
    expect(toolNames(hub)).toContain("pages-ops__who");
  });

  it("is under the rules of both names, whatever prefix it has, and its overrides are found by either", async () => {
    const place = new ReloadPlace();
    const tools = ["who", "drop", "burn", "plain", "other"];
    const hub = await place.start({
      mcpServers: { git: place.server("shared", { tools }, { toolPrefix: "g__" }) },
      tools: { deny: ["g__drop", "git-reviewer__burn"] },
      roles: {
        reviewer: {
          mcpServers: { git: place.server("own", { tools }) },
          overrides: { g__plain: { description: "by its name here" }, "git-reviewer__other": { name: "mine" } },
        },
        named: { mcpServers: { git: place.server("own", { tools }, { toolPrefix: "own__" }) } },
      },
    });
    const reviewer = hub.openSession({ role: "reviewer", owner: false });
    expect(toolNames(hub, reviewer)).toEqual(["g__who", "g__plain", "mine"]);
    expect(hub.view(reviewer).tools[1]?.definition.description).toBe("by its name here");
    for (const name of ["g__drop", "g__burn"]) expect(await ask(hub, name, reviewer)).not.toContain("own ");
    expect(await ask(hub, "mine", reviewer)).toContain("own ");
    // A prefix of its own is meant; rules on the name at the hub's server still apply.
    expect(toolNames(hub, hub.openSession({ role: "named", owner: false }))).toEqual([
      "own__who",
      "own__burn",
      "own__plain",
      "own__other",
    ]);
  });

  it("takes no name that another server has", async () => {
    const place = new ReloadPlace();
    const hub = await place.start({
      mcpServers: { bare: place.server("bare", { tools: ["git__who"] }, { toolPrefix: "" }) },
      roles: { reviewer: { mcpServers: { git: place.server("own", { tools: ["who", "more"] }) } } },
    });
    const reviewer = hub.openSession({ role: "reviewer" });
    expect(toolNames(hub, reviewer).toSorted()).toEqual(["git-reviewer__who", "git__more", "git__who"]);
    expect(await ask(hub, "git__who", reviewer)).toContain("bare ");
  });
});
