import { describe, expect, it } from "vitest";
import type { Approval, AuditEntry } from "../../src/contract/activity-schemas.ts";
import type { HubEvent } from "../../src/contract/websocket.ts";
import { recordedContent } from "../../web/src/views/traffic/recorded-content.ts";
import {
  callerOf,
  choices,
  filtered,
  MOST_LINES,
  type TrafficLine,
  TrafficLog,
} from "../../web/src/views/traffic/traffic-log.ts";

const at = (second: number): string => new Date(Date.UTC(2026, 10, 17, 8, 0, second)).toISOString();

function started(callId: string, more: Partial<HubEvent<"call.started">> = {}): HubEvent<"call.started"> {
  return {
    type: "call.started",
    callId,
    time: at(1),
    session: "s",
    door: "mcp",
    role: null,
    user: null,
    kind: "tool",
    name: "files__read",
    serverId: "files",
    ...more,
  };
}

function finished(
  callId: string,
  outcome: string,
  more: Partial<HubEvent<"call.finished">> = {},
): HubEvent<"call.finished"> {
  const end = { decision: "allow", outcome, durationMs: 5, resultBytes: 10, findings: [] };
  return { ...started(callId), ...end, ...more, type: "call.finished" };
}

function waiting(callId: string): Approval {
  return {
    ...{ id: `a-${callId}`, status: "pending", held: false, callId, kind: "tool", name: "files__write" },
    session: { id: "s", door: "mcp", client: { name: "cursor" } },
    origin: { source: "files", name: "write" },
    ...{ arguments: {}, rule: {}, rules: [], reason: "", askedAt: at(3), expiresAt: at(60) },
    ...{ answer: null, answeredAt: null, answeredBy: null },
  };
}

const record = (callId: string, time: string, outcome = "ok"): AuditEntry => ({
  ...{ type: "call", time, chain: "c", seq: 1, hash: callId, callId, name: "files__read", outcome, door: "mcp" },
  findings: [{ code: "hidden-text" }, { code: "hidden-text" }],
});

const shown = (log: TrafficLog): string[] => log.lines().map(({ callId, outcome }) => `${callId} ${outcome}`);

describe("the log of live calls", () => {
  it("[joy-07a] has one line for each call, the newest first, that follows it to its end", () => {
    const log = new TrafficLog();
    log.take(started("a"));
    log.take(started("b"));
    expect(shown(log)).toEqual(["b running", "a running"]);
    log.take(finished("a", "tool_error", { findings: ["x", "x"] }));
    expect(shown(log)).toEqual(["b running", "a tool_error"]);
    expect(log.lines()[1]).toMatchObject({ durationMs: 5, resultBytes: 10, findings: ["x"] });
    // One that was refused never started.
    log.take(finished("c", "denied"));
    expect(shown(log)[0]).toBe("c denied");
  });

  it("[joy-07a] shows a call that waits for approval, until it is answered", () => {
    const log = new TrafficLog();
    log.take({ type: "approval.requested", approval: waiting("a") });
    expect(log.lines()).toMatchObject([{ outcome: "waiting", client: "cursor", serverId: "files" }]);
    log.take({ type: "approval.answered", id: "a-a", callId: "a", answer: "once" });
    expect(shown(log)).toEqual(["a running"]);
    log.take(started("a"));
    log.take(finished("a", "ok"));
    expect(shown(log)).toEqual(["a ok"]);
  });

  it("[joy-07a] begins with what the hub has of before, and fills in what it missed", () => {
    const log = new TrafficLog();
    log.take(started("new", { time: at(9) }));
    log.take(started("stuck", { time: at(8) }));
    log.seed([record("later", at(5)), record("early", at(2)), record("stuck", at(8))], [waiting("ask")]);
    expect(shown(log)).toEqual(["new running", "stuck ok", "later ok", "ask waiting", "early ok"]);
    expect(log.lines().at(-1)?.findings).toEqual(["hidden-text"]);
    // What was heard is newer than what is read again.
    log.take(finished("new", "ok", { time: at(9) }));
    log.seed([record("new", at(9), "unfinished")], []);
    expect(shown(log)[0]).toBe("new ok");
  });

  it("[joy-07a] stays bounded, whatever comes", () => {
    const log = new TrafficLog();
    for (let count = 0; count < MOST_LINES * 2; count += 1) log.take(started(`call-${count}`));
    expect(log.lines()).toHaveLength(MOST_LINES);
    expect(log.lines()[0]?.callId).toBe(`call-${MOST_LINES * 2 - 1}`);
  });

  it("[joy-07a] is filtered by server, tool, client, role and outcome", () => {
    const log = new TrafficLog();
    log.take(finished("a", "ok", { client: "cursor", role: "reader", name: "files__read", serverId: "files" }));
    log.take(finished("b", "denied", { client: "claude", name: "memory__delete", serverId: "memory" }));
    log.take(finished("c", "cancelled", { user: "ada" }));
    log.take(started("d"));
    const ids = (filter: Parameters<typeof filtered>[1]): string[] =>
      filtered(log.lines(), filter).map(({ callId }) => callId);
    expect(ids({})).toEqual(["d", "c", "b", "a"]);
    expect(ids({ server: "memory" })).toEqual(["b"]);
    expect(ids({ q: "DEL mem" })).toEqual(["b"]);
    expect(ids({ client: "ada" })).toEqual(["c"]);
    expect(ids({ role: "reader" })).toEqual(["a"]);
    expect(ids({ outcome: "failed" })).toEqual(["b"]);
    expect(ids({ outcome: "running", server: "files" })).toEqual(["d"]);
    expect(choices(log.lines(), callerOf, "gone")).toEqual(["ada", "claude", "cursor", "gone", "mcp"]);
    expect(choices(log.lines(), ({ role }: TrafficLine) => role, undefined)).toEqual(["reader"]);
  });
});

describe("what was recorded of a call", () => {
  it("[joy-07a] is shown as its texts, as a tree, or as far as it was kept", () => {
    expect(recordedContent('{"a":1}')).toEqual({ value: { a: 1 } });
    expect(recordedContent('{"content":[{"type":"text","text":"hi"}]}')).toEqual({ texts: ["hi"] });
    const mixed = {
      content: [
        { type: "text", text: "hi" },
        { type: "image", data: "" },
      ],
    };
    expect(recordedContent(JSON.stringify(mixed))).toEqual({ value: mixed });
    expect(recordedContent('{"a":"bc…')).toEqual({ cut: '{"a":"bc…' });
  });
});
