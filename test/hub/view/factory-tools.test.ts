import { afterEach, describe, expect, it } from "vitest";
import { createHub } from "../../../src/hub/create/create-hub.ts";
import type { Hub } from "../../../src/hub/hub.ts";
import type { Session } from "../../../src/sessions/session.ts";
import { ToolRegistry } from "../../../src/tools/tool-registry.ts";
import { doorOn, guest, LegacyClient } from "../../doors/mcp/door-bench.ts";
import { tool } from "../../sessions/session-bench.ts";

/** Offers everyone notes of their own, tools for writing to all but readers, and one more to reviewers. */
function registryOf(): ToolRegistry {
  const registry = new ToolRegistry();
  registry.register(tool("plain"));
  registry.registerFactory(({ role = "nobody" }) => [
    tool("notes", `the notes of ${role}`),
    ...(role === "reader" ? [] : [tool("write")]),
    ...(role === "reviewer" ? [tool("approve")] : []),
  ]);
  return registry;
}

const roles = { reader: {}, reviewer: {}, strict: { tools: { deny: ["write"] } } };

describe("[whole-08a] tools of factories", () => {
  let hub: Hub | undefined;
  afterEach(() => hub?.close());

  const listed = (session?: Session): string[] =>
    hub?.tools({ session: session ?? hub.session }).map(({ name }) => name) ?? [];

  it("are listed as they were made for the session that asks, and can be called there", async () => {
    hub = await createHub({ roles }, { registry: registryOf() });
    const [reader, reviewer, strict] = ["reader", "reviewer", "strict"].map((role) => hub?.openSession({ role }));
    expect(listed()).toEqual(["plain", "notes", "write"]);
    expect(listed(reader)).toEqual(["plain", "notes"]);
    expect(listed(reviewer)).toEqual(["plain", "notes", "write", "approve"]);
    expect(listed(strict)).toEqual(["plain", "notes"]);
    const about = (session?: Session): string | undefined =>
      hub?.view(session ?? hub.session).tools.find(({ name }) => name === "notes")?.definition.description;
    expect([about(reader), about(reviewer)]).toEqual(["Says the notes of reader.", "Says the notes of reviewer."]);
    expect(hub.view(reader ?? hub.session)).toBe(hub.view(reader ?? hub.session));

    const call = async (name: string, session?: Session): Promise<unknown> => {
      const outcome = await hub?.call({ name, session: session ?? hub.session });
      return outcome?.ok === true ? outcome.result.content[0] : outcome?.error.code;
    };
    expect(await call("approve", reviewer)).toMatchObject({ text: "approve" });
    expect(await call("notes", reader)).toMatchObject({ text: "the notes of reader" });
    expect(await call("write", strict)).toBe("denied");
    for (const [name, session] of [
      ["write", reader],
      ["approve", reader],
      ["approve", undefined],
    ] as const)
      expect(await call(name, session)).toBe("not_found");
  });

  it("that are registered later are there at once, also if the hub's own session gets none", async () => {
    const registry = registryOf();
    hub = await createHub({ roles }, { registry });
    const reviewer = hub.openSession({ role: "reviewer" });
    expect(listed(reviewer)).not.toContain("late");
    const remove = registry.registerFactory(({ role }) => (role === "reviewer" ? tool("late") : null));
    expect([listed(reviewer).includes("late"), listed().includes("late")]).toEqual([true, false]);
    remove();
    expect(listed(reviewer)).not.toContain("late");
  });

  it("are explained to the session that has them", async () => {
    const rules = { ...roles, reviewer: { tools: { ask: ["approve"] } } };
    hub = await createHub({ roles: rules }, { registry: registryOf() });
    const reviewer = hub.openSession({ role: "reviewer" });
    expect(hub.explain("approve", reviewer)?.decision).toMatchObject({ verdict: "ask", rule: { level: "role" } });
    expect((await hub.explain({ name: "approve", session: reviewer }))?.decision.verdict).toBe("ask");
    expect(hub.explain("approve")).toBeUndefined();
    expect(hub.explain("write", hub.openSession({ role: "strict" }))?.decision.verdict).toBe("deny");
    expect(hub.explain("write", hub.openSession({ role: "reader" }))).toBeUndefined();
  });

  it("are listed so for MCP clients", async () => {
    const { door } = await doorOn({ roles }, { registry: registryOf() });
    const names = async (role: string): Promise<string[]> => {
      const client = new LegacyClient(door, { origin: { caller: guest(role, role) } });
      await client.initialize();
      const { result } = await client.request("tools/list");
      return ((result?.["tools"] ?? []) as { name: string }[]).map(({ name }) => name);
    };
    expect(await names("reader")).toEqual(["plain", "notes"]);
    expect(await names("reviewer")).toEqual(["plain", "notes", "write", "approve"]);
  });

  it("tell the clients that have others now, also if the hub's own session gets none", async () => {
    const registry = registryOf();
    const { door } = await doorOn({ roles }, { registry });
    const clients = await Promise.all(
      ["reviewer", "reader"].map(async (role) => {
        const client = new LegacyClient(door, { origin: { caller: guest(role, role) } });
        await client.initialize();
        await client.request("tools/list");
        return client;
      }),
    );
    const told = () => clients.map((client) => client.noticed("notifications/tools/list_changed").length);
    const remove = registry.registerFactory(({ role }) => (role === "reviewer" ? tool("late") : null));
    await expect.poll(told).toEqual([1, 0]);
    remove();
    await expect.poll(told).toEqual([2, 0]);
  });
});
