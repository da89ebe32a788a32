import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { EVENT_SCOPES } from "../../../../src/contract/event-scopes.ts";
import { EVENTS, type EventName } from "../../../../src/contract/websocket.ts";
import { EventFeed, eventFilter, type Frame } from "../../../../src/doors/http/live/event-feed.ts";
import type { SkillManifestInfo } from "../../../../src/contract/skill-schemas.ts";
import type { Caller } from "../../../../src/model/caller.ts";
import { Redactor } from "../../../../src/secrets/redactor.ts";
import { Session } from "../../../../src/sessions/session.ts";
import { askRequest } from "../ask-request.ts";
import { callRecord } from "../../../support/call-record.ts";
import { callerWith, configOf, entry, operator, type StagedHub, stagedHub, tool } from "./fake-hub.ts";

interface Told {
  readonly type: EventName;
  readonly seq?: number;
  readonly [field: string]: unknown;
}

class Ear {
  readonly frames: Frame[] = [];
  readonly caller: Caller;
  readonly session: Session;
  readonly wants;

  constructor(caller: Caller = operator, names?: string[]) {
    this.caller = caller;
    this.session = new Session({ owner: caller.owner, role: caller.role });
    this.wants = eventFilter(names);
  }

  send(frame: Frame): void {
    this.frames.push(frame);
  }

  get heard(): Told[] {
    return this.frames.map(({ text }) => JSON.parse(text) as Told);
  }

  get types(): string[] {
    return this.heard.map(({ type }) => type);
  }
}

function feedOf(hub: StagedHub, ring = { events: 100, bytes: 100_000 }, redactor = new Redactor()): EventFeed {
  return new EventFeed(hub, redactor, { ring });
}

function listen(feed: EventFeed, caller?: Caller, names?: string[]): Ear {
  const ear = new Ear(caller, names);
  feed.subscribe(ear);
  return ear;
}

const manifest: SkillManifestInfo = {
  ...{ id: "openclaw-skill-notes", name: "notes", version: "1.0.0", author: "a", description: "n", category: "tools" },
  ...{ icon: "n", keywords: [], tools: [], source: "openclaw", from: "/skills", sourcePath: "/skills/notes" },
};
const imported = {
  ...{ skillId: manifest.id, name: "notes", path: "/skills/notes", warnings: [], dependenciesMet: true },
  manifest,
};
const failed = { path: "/skills/bad", name: "bad", code: "invalid", message: "no" };
const result = { imported: [imported], unchanged: [], failed: [failed], totalScanned: 2 };

/** Makes everything happen that is told of. */
async function everything(hub: StagedHub): Promise<void> {
  hub.become("files", "connecting");
  hub.offer([tool("files", "read")]);
  hub.become("files", "ready", { status: "connected" });
  await nextTurn();
  hub.become("files", "failed", { lastError: "it ended", hint: "look" });
  hub.reload(await configOf({ mcpServers: { other: entry } }));
  hub.emit("skill-import", { path: "/skills/notes", single: true, result });
  hub.emit("skill-import", { path: "/skills", single: false, result });
  hub.emit("skill-remove", { skillId: manifest.id, name: "notes" });
  hub.emit("skills", {});
  hub.emit("pins", {});
  hub.emit("recording", {});
  hub.emit("warning", { server: "files", message: "odd" });
  const asked = askRequest("a1");
  hub.emit("ask", asked);
  hub.emit("answer", { request: asked, answer: "once" });
  const { outcome: _, durationMs: _d, resultBytes: _b, notes: _n, ...start } = callRecord({ callId: "c1" });
  hub.emit("call-start", start);
  hub.emit("call", callRecord({ callId: "c1", findings: [{ code: "hidden_text", severity: "high" }] }));
  const found = {
    kinds: ["hidden_text"] as const,
    places: ["result"] as const,
    score: 7,
    forgedMarkers: 1,
    blocked: false,
  };
  hub.emit("suspicious", { callId: "c1", session: "s", name: "files__read", server: "files", tool: "read", ...found });
  hub.emit("session", { session: hub.session, open: true });
  hub.emit("session", { session: hub.session, open: false });
}

/** To one asker alone, or said to one receiver. */
const NOT_TOLD = /\.list$|^events\.lost$|^extraTool\.|^session\.(notice|server)$|^question\.|^resource\.updated$/;

describe("the event feed", () => {
  it("[oper-05b] tells every event of the contract, with its fields", async () => {
    const hub = await stagedHub();
    const ear = listen(feedOf(hub));
    await everything(hub);
    const names = Object.keys(EVENTS).filter((name) => !NOT_TOLD.test(name));
    expect(new Set(ear.types)).toEqual(new Set(names));
    for (const { type, seq, ...fields } of ear.heard) {
      const checked = EVENTS[type].fields.strict().safeParse(fields);
      expect(checked.error?.issues, type).toBeUndefined();
      expect(seq).toBeGreaterThan(0);
    }
    expect(ear.heard.map(({ seq }) => seq)).toEqual(ear.heard.map((_, index) => index + 1));
  });

  it("[oper-05b] says once for each connection that a server is connected, and why it no longer is", async () => {
    const hub = await stagedHub();
    const ear = listen(feedOf(hub), operator, ["mcp.server.*"]);
    for (const state of ["connecting", "ready", "degraded", "ready", "degraded"] as const) hub.become("files", state);
    hub.become("files", "restarting", { lastError: "no answer" });
    hub.become("files", "connecting");
    hub.become("files", "restarting", { lastError: "refused" });
    hub.become("files", "failed", { lastError: "given up", hint: "look" });
    const told = ear.heard.filter(({ type }) => type !== "mcp.server.changed");
    expect(told.map(({ type, reason, error }) => [type, reason ?? error])).toEqual([
      ["mcp.server.connected", undefined],
      ["mcp.server.disconnected", "no answer"],
      ["mcp.server.error", "refused"],
      ["mcp.server.error", "given up"],
    ]);
    expect(ear.types.filter((type) => type === "mcp.server.changed")).toHaveLength(9);
  });

  it("[oper-05b] tells of added, changed and removed servers", async () => {
    const hub = await stagedHub({ mcpServers: { files: entry, notes: entry } });
    const ear = listen(feedOf(hub), operator, ["mcp.server.*"]);
    hub.reload(await configOf({ mcpServers: { notes: entry, web: entry } }), ["notes"]);
    expect(ear.heard.map(({ type, serverId, server }) => [type, serverId ?? (server as { id: string }).id])).toEqual([
      ["mcp.server.removed", "files"],
      ["mcp.server.changed", "notes"],
      ["mcp.server.added", "web"],
    ]);
  });

  it("[oper-05b] tells the tools of the server that changed, with their input schemas, and says when it left some out", async () => {
    const hub = await stagedHub({ mcpServers: { files: entry, notes: entry } });
    const ear = listen(feedOf(hub), operator, ["mcp.tools.*"]);
    hub.offer([tool("files", "read"), tool("toolcrib:skills", "x")]);
    hub.offer([
      tool("files", "read"),
      ...Array.from({ length: 501 }, (_, index) => tool("notes", `n${index}`, "d".repeat(1000))),
    ]);
    await nextTurn();
    expect(ear.heard.map(({ serverId, truncated }) => [serverId, truncated])).toEqual([
      ["files", undefined],
      ["notes", true],
    ]);
    expect(ear.heard[0]?.["tools"]).toEqual([
      {
        name: "files__read",
        serverId: "files",
        mcpName: "read",
        server: "files",
        tool: "read",
        inputSchema: { type: "object" },
        description: "read of files",
        fingerprint: "files/read/read of files",
        pin: "same",
      },
    ]);
    expect(ear.heard[1]?.["tools"]).toHaveLength(500);
    hub.offer([...hub.tools]);
    await nextTurn();
    expect(ear.frames).toHaveLength(2);
    // A server that comes back has its tools told again.
    hub.become("files", "ready");
    await nextTurn();
    expect(ear.heard.at(-1)).toMatchObject({ serverId: "files", tools: [{ name: "files__read" }] });
  });

  it("masks secrets once, for everybody", async () => {
    const hub = await stagedHub();
    const redactor = new Redactor();
    redactor.addCredential("s3cret-of-a-server");
    const feed = feedOf(hub, undefined, redactor);
    const [one, other] = [listen(feed), listen(feed)];
    hub.emit("warning", { message: "it said s3cret-of-a-server" });
    hub.emit("ask", askRequest("a1", { arguments: { key: "s3cret-of-a-server" } }));
    expect(one.frames.map(({ text }) => text).join("")).not.toContain("s3cret");
    expect(one.frames[0]?.bytes).toBe(other.frames[0]?.bytes);
  });
});

describe("[oper-05c] who was away", () => {
  it("gets what was missed, and then what happens", async () => {
    const hub = await stagedHub();
    const feed = feedOf(hub);
    for (const message of ["one", "two", "three"]) hub.emit("warning", { message });
    const ear = new Ear();
    feed.replay(ear, { after: 1, epoch: feed.epoch });
    feed.subscribe(ear);
    hub.emit("warning", { message: "four" });
    expect(ear.heard.map(({ seq, message }) => [seq, message])).toEqual([
      [2, "two"],
      [3, "three"],
      [4, "four"],
    ]);
  });

  it.each([
    ["count", { events: 3, bytes: 100_000 }],
    ["size", { events: 1000, bytes: 200 }],
  ])("learns what is no longer known, by %s", async (_, ring) => {
    const hub = await stagedHub();
    const feed = feedOf(hub, ring);
    for (let number = 1; number <= 2000; number++) hub.emit("warning", { message: `message ${number}` });
    const ear = new Ear();
    feed.replay(ear, { after: 5, epoch: feed.epoch });
    const [lost, ...rest] = ear.heard;
    expect(rest.length).toBeGreaterThan(0);
    expect(rest.length).toBeLessThan(5);
    expect(rest.at(-1)?.seq).toBe(2000);
    expect(lost).toEqual({ type: "events.lost", from: 6, to: (rest[0]?.seq ?? 0) - 1 });
    const known = new Ear();
    feed.replay(known, { after: 2000 });
    expect(known.frames).toEqual([]);
  });

  it("has lost everything after a restart: numbers of another run are not taken for this one's", async () => {
    const hub = await stagedHub();
    const [before, after] = [feedOf(hub), feedOf(hub)];
    expect(before.epoch).not.toBe(after.epoch);
    hub.emit("warning", { message: "x" });
    for (const from of [{ after: 0, epoch: before.epoch }, { after: 7 }]) {
      const ear = new Ear();
      after.replay(ear, from);
      expect(ear.heard).toEqual([{ type: "events.lost", from: 0, to: 1 }]);
    }
  });

  it("gets the newest calls of a hub that no one watched, and every call that it missed later", async () => {
    const hub = await stagedHub();
    const feed = feedOf(hub, { events: 4096, bytes: 2 ** 21 });
    const call = (count: number): void => {
      for (let number = 1; number <= count; number++) hub.emit("call", callRecord());
    };
    hub.emit("warning", { message: "one" });
    call(1000);
    const first = new Ear();
    feed.replay(first, { after: 0 });
    expect(first.heard[0]).toEqual({ type: "events.lost", from: 1, to: 745 });
    expect(first.heard.slice(1).map(({ seq }) => seq)).toEqual(Array.from({ length: 256 }, (_, at) => 746 + at));
    feed.subscribe(first)();
    call(1000);
    const later = new Ear();
    feed.replay(later, { after: 1001 });
    expect(later.heard.map(({ seq }) => seq)).toEqual(Array.from({ length: 1000 }, (_, at) => 1002 + at));
  });

  it("hears everything in its order, also what happens because something was told", async () => {
    const hub = await stagedHub();
    const feed = feedOf(hub);
    const [first, second] = [new Ear(), new Ear()];
    feed.subscribe({ ...first, wants: first.wants, send: ({ type }) => type === "warning" && hub.emit("pins", {}) });
    feed.subscribe(second);
    hub.emit("warning", { message: "x" });
    expect(second.types).toEqual(["warning", "pins.changed"]);
  });

  it("hears no more when the feed or the listener stopped", async () => {
    const hub = await stagedHub();
    const feed = feedOf(hub);
    const ear = new Ear();
    const stop = feed.subscribe(ear);
    stop();
    hub.emit("warning", { message: "x" });
    feed.close();
    hub.emit("warning", { message: "y" });
    expect([ear.frames, feed.seq, feed.receivers]).toEqual([[], 1, 0]);
  });
});

describe("[oper-07a] who hears what", () => {
  const reader = callerWith(["read"]);
  const OPERATORS_ONLY = Object.entries(EVENT_SCOPES).flatMap(([name, scope]) => (scope === "admin" ? [name] : []));

  it("operators' events are for operators", async () => {
    const hub = await stagedHub();
    const ear = listen(feedOf(hub), reader);
    await everything(hub);
    expect(ear.types.filter((type) => OPERATORS_ONLY.includes(type))).toEqual([]);
    expect(ear.types).toContain("mcp.server.connected");
    const [batch] = ear.heard.filter(({ type }) => type === "skills.batch.imported");
    expect(batch).toMatchObject({ imported: 1, failed: 0, totalScanned: 1, skills: [{ name: "notes" }], failures: [] });
  });

  it("one's own calls are one's own", async () => {
    const hub = await stagedHub();
    const feed = feedOf(hub);
    const [own, other] = [listen(feed, reader), listen(feed, reader)];
    hub.emit("call", callRecord({ callId: "c1", session: own.session.id }));
    expect([own.types, other.types]).toEqual([["call.finished"], []]);
  });

  it("of one's own calls to what is hidden, one hears what one would of what is not there", async () => {
    const hub = await stagedHub({ mcpServers: { files: { ...entry, roles: ["wide"] } }, roles: { narrow: {} } });
    const feed = feedOf(hub);
    const [own, all] = [listen(feed, callerWith(["read", "call"], { role: "narrow" })), listen(feed)];
    const given = { session: own.session.id, name: "files__read", decision: "deny", outcome: "not_found" } as const;
    const { outcome: _, durationMs: _d, resultBytes: _b, notes: _n, ...start } = callRecord({ callId: "c1", ...given });
    hub.emit("call-start", start);
    hub.emit("call", callRecord({ callId: "c1", ...given }));
    hub.emit("call", callRecord({ callId: "c1", ...given, decision: "none", origin: null }));
    const [started, hidden, missing] = own.heard;
    expect(started).toMatchObject({ type: "call.started", serverId: null });
    expect({ ...hidden, seq: 0 }).toEqual({ ...missing, seq: 0 });
    expect(JSON.stringify(own.heard)).not.toMatch(/deny|"files"/);
    expect(all.heard[1]).toMatchObject({ serverId: "files", decision: "deny" });
    hub.emit(
      "call",
      callRecord({ callId: "c2", session: own.session.id, origin: { source: "toolcrib:skills", name: "x" } }),
    );
    expect(own.heard.at(-1)).toMatchObject({ serverId: "toolcrib:skills", decision: "allow" });
  });

  it("that the tools of a server are gone with it is told to nobody, as it can no longer be said who saw it", async () => {
    const hub = await stagedHub({ mcpServers: { files: { ...entry, roles: ["wide"] }, notes: entry } });
    hub.offer([tool("files", "read"), tool("notes", "take")]);
    const ear = listen(feedOf(hub), reader);
    hub.reload(await configOf({ mcpServers: { notes: entry } }));
    hub.offer([]);
    await nextTurn();
    expect(JSON.stringify(ear.heard)).not.toContain("files");
    expect(ear.heard.filter(({ type }) => type === "mcp.tools.discovered")).toMatchObject([
      { serverId: "notes", tools: [] },
    ]);
  });

  it("of a server that a role does not see it hears nothing, not even that it is gone", async () => {
    const roles = { narrow: { servers: ["notes"], skills: ["other"] }, wide: {} };
    const hub = await stagedHub({ mcpServers: { files: { ...entry, roles: ["wide"] }, notes: entry }, roles });
    const feed = feedOf(hub);
    const [narrow, wide, unknown] = ["narrow", "wide", "nobody"].map((role) =>
      listen(feed, callerWith(["read", "call"], { role })),
    );
    hub.offer([tool("files", "read"), tool("notes", "take")]);
    hub.become("files", "ready");
    hub.become("notes", "ready");
    await nextTurn();
    hub.emit("skill-import", { path: "/skills/notes", single: true, result });
    hub.emit("skill-remove", { skillId: manifest.id, name: "notes" });
    hub.emit("skill-import", { path: "/skills", single: false, result });
    hub.reload(await configOf({ mcpServers: { notes: entry }, roles }));
    expect(JSON.stringify(narrow?.heard)).not.toMatch(/files|"notes","path|skills\./);
    expect(narrow?.types).toContain("mcp.tools.discovered");
    expect(wide?.types.filter((type) => type === "mcp.server.removed")).toHaveLength(1);
    expect(wide?.types).toContain("openclaw.batch.imported");
    expect(unknown?.types.filter((type) => type !== "mcp.catalog.changed")).toEqual([]);
    // Afterwards too, when the config says nothing of the server any more.
    const late = new Ear(callerWith(["read"], { role: "narrow" }));
    feed.replay(late, { after: 0 });
    expect(late.types).toEqual(narrow?.types);
  });

  it("tools that a role does not see are left out", async () => {
    const hub = await stagedHub({ mcpServers: { files: entry }, roles: { narrow: {} } });
    hub.hidden = { narrow: ["files__write"] };
    const feed = feedOf(hub);
    const narrow = listen(feed, callerWith(["read"], { role: "narrow" }), ["mcp.tools.discovered"]);
    const all = listen(feed, operator, ["mcp.tools.discovered"]);
    hub.offer([tool("files", "read"), tool("files", "write")]);
    await nextTurn();
    const names = (ear: Ear): unknown =>
      ear.heard.map(({ tools }) => (tools as { tool: string }[]).map((each) => each.tool));
    expect([names(narrow), names(all)]).toEqual([[["read"]], [["read", "write"]]]);
  });

  it.each([
    [["mcp.*"], 1],
    [["warning"], 1],
    [["mcp.server.added", "warning"], 1],
    [["*"], 2],
    [["call.*"], 0],
  ])("and only what they asked for: %j", async (names, count) => {
    const hub = await stagedHub();
    const ear = listen(feedOf(hub), operator, names);
    hub.emit("warning", { message: "x" });
    hub.emit("visibility", {});
    expect(ear.frames).toHaveLength(count);
  });

  it("a name that cannot be one is refused", () => {
    expect(() => eventFilter(["mcp.*", "<b>"])).toThrow("not the name of an event");
  });
});
