/** Every command and event of the contract with nothing played: a hub in its own process, a real server, real skills. */
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type LiveConnection, ToolcribClient } from "../../../../src/api-client/index.ts";
import { EVENT_SCOPES } from "../../../../src/contract/event-scopes.ts";
import { COMMANDS, EVENTS, type HubEvent } from "../../../../src/contract/websocket.ts";
import { ServedHub } from "../../../load/served-hub.ts";
import { misbehaving } from "../../../support/servers.ts";
import { writeSkill } from "../../../support/skill-folder.ts";

const READER = "reader-token-0123456789";
const CALLER = "caller-token-0123456789";

let hub: ServedHub;
let boss: LiveConnection;
let reader: LiveConnection;
let client: ToolcribClient;
const heard: HubEvent[] = [];
const overheard: HubEvent[] = [];

beforeAll(async () => {
  hub = await ServedHub.start({
    mcpServers: { one: misbehaving("ok"), hidden: { ...misbehaving("ok"), enabled: false } },
    tools: { ask: ["one__env"] },
    roles: { reviewer: { servers: ["one"] } },
    http: {
      auth: {
        tokens: [
          { token: READER, user: "rita", role: "reviewer", scopes: ["read"] },
          { token: CALLER, user: "carl", scopes: ["call", "approve"] },
        ],
      },
    },
  });
  client = new ToolcribClient(hub);
  boss = client.live({ onEvent: (event) => heard.push(event) });
  reader = new ToolcribClient({ url: hub.url, token: READER }).live({ onEvent: (event) => overheard.push(event) });
  await reader.command("me", {});
});

afterAll(async () => {
  boss.close();
  reader.close();
  await hub.remove();
});

async function until<Type extends HubEvent["type"]>(
  type: Type,
  fits: (event: HubEvent<Type>) => boolean = () => true,
): Promise<HubEvent<Type> | undefined> {
  // What has this type has the fields of this type.
  const find = (): HubEvent<Type> | undefined =>
    (heard.filter((event) => event.type === type) as HubEvent<Type>[]).find(fits);
  await expect.poll(find).toBeDefined();
  return find();
}

const ran = new Set<string>();
const command: LiveConnection["command"] = (type, fields, options) => {
  ran.add(type);
  return boss.command(type, fields, options);
};

describe("[oper-05a] [oper-05b] a real hub over the WebSocket", () => {
  it("[whole-14a] [whole-14b] servers: added, connected, used, changed, disconnected, removed", async () => {
    const { server } = await command("mcp.addServer", {
      serverId: "two",
      config: { ...misbehaving("ok"), autoConnect: false },
    });
    expect(server).toMatchObject({ id: "two", from: "store", editable: true });
    expect(await until("mcp.server.added", (event) => event.server.id === "two")).toBeDefined();
    expect((await command("mcp.connect", { serverId: "two" })).server.state).toBe("ready");
    expect(await until("mcp.server.connected", ({ serverId }) => serverId === "two")).toBeDefined();
    const found = await until("mcp.tools.discovered", ({ serverId, tools }) => serverId === "two" && tools.length > 0);
    expect(found?.tools.map(({ tool }) => tool)).toContain("echo");
    const named = { name: "two__echo", serverId: "two", mcpName: "echo", server: "two", tool: "echo" };
    expect(found?.tools).toContainEqual(
      expect.objectContaining({ ...named, inputSchema: expect.any(Object) as object }),
    );
    const listed = await command("mcp.listServers", {});
    expect(listed.servers.map(({ id }) => id)).toEqual(["one", "hidden", "two"]);
    expect(listed.servers.at(-1)).toMatchObject({
      ...{ state: "ready", enabled: true, autoConnect: false },
      config: { command: process.execPath, args: expect.any(Array) as unknown[] },
    });
    const seen = await reader.command("mcp.listServers", {});
    expect(seen.servers.every(({ enabled, config }) => enabled && config === undefined)).toBe(true);
    expect((await command("mcp.listTools", { serverId: "two" })).tools).toContainEqual(expect.objectContaining(named));
    expect((await until("mcp.servers.list"))?.servers).toHaveLength(3);
    expect((await until("mcp.servers.list"))?.servers.map(({ autoConnect }) => autoConnect)).toEqual([
      true,
      true,
      false,
    ]);
    const { tools } = await command("mcp.listTools", { serverId: "two" });
    expect((await until("mcp.tools.list"))?.tools).toEqual(tools);
    const result = await command("mcp.callTool", { serverId: "two", toolName: "echo", args: { text: "hi" } });
    expect(result.content).toMatchObject([{ type: "text", text: "hi" }]);
    const started = await until("call.started", ({ name }) => name === "two__echo");
    const finished = await until("call.finished", ({ callId }) => callId === started?.callId);
    expect(finished).toMatchObject({ door: "websocket", serverId: "two", outcome: "ok" });
    expect((await command("mcp.updateServer", { serverId: "two", updates: { name: "Two" } })).server.name).toBe("Two");
    await command("mcp.disconnect", { serverId: "two" });
    const disconnected = await until("mcp.server.disconnected", ({ serverId }) => serverId === "two");
    expect(disconnected?.reason).toBe("disconnected by request");
    await command("mcp.updateServer", { serverId: "two", updates: { args: ["no-such-file.mjs"] } });
    await command("mcp.connect", { serverId: "two" });
    expect((await until("mcp.server.error", ({ serverId }) => serverId === "two"))?.error).toBeTypeOf("string");
    expect(await command("mcp.removeServer", { serverId: "two" })).toEqual({ serverId: "two" });
    expect(await until("mcp.server.removed", ({ serverId }) => serverId === "two")).toBeDefined();
  });

  it("skills: looked at, imported, read, listed and removed, under both families of names", async () => {
    const dirPath = join(hub.dir, "skills");
    const body = "Do as it says.";
    const [one, two] = ["one-skill", "two-skill"].map((name) => writeSkill(dirPath, name, { body }));
    expect((await command("skills.scan", { path: dirPath })).skills.map(({ name }) => name)).toEqual([
      "one-skill",
      "two-skill",
    ]);
    expect((await command("skills.import", { path: one ?? "" })).imported).toMatchObject([{ name: "one-skill" }]);
    expect(await until("skills.skill.imported")).toMatchObject({ name: "one-skill", dependenciesMet: true });
    expect((await command("openclaw.importDirectory", { dirPath, dryRun: true })).totalScanned).toBe(2);
    await expect(boss.command("skills.importDirectory", { dirPath: "" })).rejects.toThrow(/^dirPath: /);
    expect((await command("skills.importDirectory", { dirPath, dryRun: true })).imported).toHaveLength(1);
    expect((await command("openclaw.importDirectory", { dirPath })).imported).toMatchObject([
      { skillId: "openclaw-skill-one-skill" },
      { skillId: "openclaw-skill-two-skill" },
    ]);
    for (const type of ["skills.batch.imported", "openclaw.batch.imported"] as const) {
      expect(await until(type)).toMatchObject({ imported: 2, failed: 0, totalScanned: 2, skills: [{}, {}] });
    }
    expect(await until("openclaw.skill.imported")).toMatchObject({ skillId: "openclaw-skill-one-skill" });
    const { skills } = await command("skills.list", {});
    expect((await until("skills.import.list"))?.imports).toEqual(
      skills.map((skill) => ({ ...skill, skillId: skill.id })),
    );
    expect((await command("openclaw.listImported", {})).skills.map(({ name }) => name)).toEqual([
      "one-skill",
      "two-skill",
    ]);
    expect(await until("openclaw.import.list")).toMatchObject({ imports: [{ kind: "imported" }, {}] });
    const [first, second] = skills;
    const ids = { skillId: first?.id ?? "" };
    expect((await command("skills.getInstructions", ids)).instructions).toContain("Do as it says.");
    expect((await command("openclaw.getInstructions", ids)).name).toBe("one-skill");
    expect(await command("skills.remove", ids)).toMatchObject({ name: "one-skill" });
    expect(await command("openclaw.removeImport", { skillId: second?.id ?? "" })).toMatchObject({ name: "two-skill" });
    for (const type of ["skills.import.removed", "openclaw.import.removed"] as const) {
      expect(await until(type, ({ name }) => name === "two-skill")).toBeDefined();
    }
    expect((await command("openclaw.importSkill", { path: two ?? "" })).imported).toMatchObject([
      { name: "two-skill" },
    ]);
    expect(await until("skills.changed")).toBeDefined();
  });

  it("sessions: the hub's own is no client's", async () => {
    const { sessions } = await boss.command("listSessions", {});
    expect(sessions.map(({ door }) => door).toSorted()).toEqual(["hub", "websocket", "websocket"]);
    const { sessionId } = await command("sessions.open", {
      servers: { gone: { command: "toolcrib-no-such-program" } },
    });
    expect((await boss.command("getSession", { sessionId })).session.notices).toMatchObject([{ server: "gone" }]);
    expect(await command("sessions.close", { sessionId })).toEqual({ sessionId });
  });

  it("[guard-20d] taint: listed and cleared, by no one who could only call", async () => {
    const { sessions: before } = await command("taint.list", {});
    for (const { id } of before) await command("taint.clear", { sessionId: id });
    expect(await command("taint.list", {})).toEqual({ sessions: [], memories: [] });
    const calling = new ToolcribClient({ url: hub.url, token: CALLER }).live({});
    try {
      await calling.command("mcp.callTool", { toolName: "one__echo", args: { text: "from a stranger" } });
      const { sessions: tainted } = await command("taint.list", {});
      expect(tainted).toMatchObject([{ door: "websocket", user: "carl", taint: { name: "one__echo" } }]);
      const own = { sessionId: tainted[0]?.id ?? "" };
      for (const refused of [calling.command("taint.list", {}), calling.command("taint.clear", own)]) {
        await expect(refused).rejects.toMatchObject({ code: "denied" });
      }
      expect((await command("taint.list", {})).sessions).toHaveLength(1);
      expect(await command("taint.clear", own)).toEqual(own);
      expect((await command("taint.list", {})).sessions).toEqual([]);
      await expect(command("taint.clear", own)).rejects.toMatchObject({ code: "not_found" });
    } finally {
      calling.close();
    }
  });

  it("[detect-04d] passages: for operators only", async () => {
    expect(await command("guard.passages", { callId: "none" })).toEqual({ passages: [] });
    const calling = new ToolcribClient({ url: hub.url, token: CALLER }).live({});
    try {
      await expect(calling.command("guard.passages", { callId: "none" })).rejects.toMatchObject({ code: "denied" });
    } finally {
      calling.close();
    }
  });

  it("approvals: asked for, answered, and then it runs", async () => {
    const call = { toolName: "one__env" };
    await expect(client.callTool(call)).rejects.toMatchObject({ code: "denied" });
    const asked = await until("approval.requested", ({ approval }) => approval.name === "one__env");
    const approvalId = asked?.approval.id ?? "";
    await command("approvals.answer", { approvalId, answer: "once" });
    expect(await until("approval.answered", ({ id }) => id === approvalId)).toMatchObject({ answer: "once" });
    expect(await client.callTool(call)).toHaveProperty("content");
  });

  it("left no command out, and every event had its number and its fields", () => {
    expect([...ran].toSorted()).toEqual(Object.keys(COMMANDS).toSorted());
    for (const { type, seq, ...fields } of heard) {
      const checked = EVENTS[type].fields.safeParse(fields);
      expect(checked.error?.issues, type).toBeUndefined();
      expect(seq === undefined).toBe(/\.list$|^session\.(server|notice)$/.test(type));
    }
    const numbers = heard.flatMap(({ seq }) => seq ?? []);
    expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
    expect(new Set(numbers).size).toBe(numbers.length);
  });

  it("[oper-07a] a reader of a role heard only of what it may see, and may change nothing", async () => {
    await reader.command("me", {});
    const types = new Set(overheard.map(({ type }) => type));
    expect([...types].filter((type) => EVENT_SCOPES[type] === "admin")).toEqual([]);
    expect(JSON.stringify(overheard)).not.toMatch(/"two"|two__|-skill/);
    for (const type of ["mcp.connect", "mcp.disconnect", "mcp.removeServer"] as const) {
      await expect(reader.command(type, { serverId: "one" })).rejects.toMatchObject({ code: "denied" });
    }
    await expect(reader.command("mcp.callTool", { toolName: "one__echo" })).rejects.toMatchObject({ code: "denied" });
    expect((await reader.command("mcp.listServers", {})).servers.map(({ id }) => id)).toEqual(["one"]);
  });
});
