import { describe, expect, it } from "vitest";
import { ToolcribError } from "../../src/model/errors.ts";
import type { JsonObject } from "../../src/model/json.ts";
import { ResourceSubscriptions } from "../../src/upstream/link-maintenance.ts";
import { bench, contextOf, sessionOf } from "../support/connection-bench.ts";
import { settle } from "../support/fake-clock.ts";
import { FakeWire, type Handlers, legacyHandlers, modernHandlers } from "../support/fake-wire.ts";

const on = { kind: "subscribe", uri: "x://1" } as const;
const off = { kind: "unsubscribe", uri: "x://1" } as const;

/** A server that is told things, and answers when the test does. */
function server() {
  const told: { uris: string[]; answer: PromiseWithResolvers<JsonObject> }[] = [];
  return {
    told,
    tell: (uris: string[]): Promise<JsonObject> => {
      const answer = Promise.withResolvers<JsonObject>();
      told.push({ uris, answer });
      return answer.promise;
    },
  };
}

describe("[gate-02b] a second session that follows a resource", () => {
  it("hears with the first one that the server agreed", async () => {
    const [subscriptions, { told, tell }] = [new ResourceSubscriptions(), server()];
    const first = subscriptions.change(on, "a", tell);
    let over = false;
    const second = subscriptions.change(on, "b", tell).finally(() => (over = true));
    await settle();
    expect(over).toBe(false);
    told[0]?.answer.resolve({ agreed: 1 });
    expect(await Promise.all([first, second])).toEqual([{ agreed: 1 }, { agreed: 1 }]);
    expect(await subscriptions.change(on, "c", tell)).toEqual({});
    expect(told).toHaveLength(1);
  });

  it("hears with the first one that the server refused, and nobody follows it then", async () => {
    const [subscriptions, { told, tell }] = [new ResourceSubscriptions(), server()];
    const both = [subscriptions.change(on, "a", tell), subscriptions.change(on, "b", tell)];
    const ends = Promise.allSettled(both);
    told[0]?.answer.reject(new ToolcribError("not_found", "no"));
    expect(await ends).toMatchObject([{ reason: { message: "no" } }, { reason: { message: "no" } }]);
    expect(subscriptions.uris).toEqual([]);
    void subscriptions.change(on, "b", tell);
    expect(told).toHaveLength(2);
  });

  it("asks the server itself if the first one no longer wants it", async () => {
    const [subscriptions, { told, tell }] = [new ResourceSubscriptions(), server()];
    const first = subscriptions.change(on, "a", tell);
    const others = ["b", "c"].map((session) => subscriptions.change(on, session, tell));
    told[0]?.answer.reject(new ToolcribError("cancelled", "gave up"));
    await expect(first).rejects.toThrow("gave up");
    await settle();
    expect(told).toHaveLength(2);
    told[1]?.answer.resolve({ agreed: 2 });
    expect(await Promise.all(others)).toEqual([{ agreed: 2 }, { agreed: 2 }]);
    expect(subscriptions.uris).toEqual(["x://1"]);
  });

  it("is not harmed by the failure of one that gave it up in the meantime", async () => {
    const [subscriptions, { told, tell }] = [new ResourceSubscriptions(), server()];
    const first = subscriptions.change(on, "a", tell);
    void subscriptions.change(off, "a", tell);
    const second = subscriptions.change(on, "b", tell);
    expect(told.map(({ uris }) => uris)).toEqual([["x://1"], [], ["x://1"]]);
    told[0]?.answer.reject(new ToolcribError("timeout", "late"));
    await expect(first).rejects.toThrow("late");
    told[2]?.answer.resolve({});
    await second;
    expect(subscriptions.uris).toEqual(["x://1"]);
  });
});

describe.each(["legacy", "modern"] as const)("[gate-07c] resources that are followed again, %s", (era) => {
  const capabilities = { tools: {}, resources: { subscribe: true } };
  const handlers: Handlers = {
    "resources/list": () => ({ resultType: "complete", resources: [] }),
    "resources/templates/list": () => ({ resultType: "complete", resourceTemplates: [] }),
    "resources/subscribe": () => ({}),
    "resources/unsubscribe": () => ({}),
  };
  const make = (): FakeWire =>
    new FakeWire("stdio", (era === "legacy" ? legacyHandlers : modernHandlers)({ capabilities, handlers }));

  /** Those that the server was asked to tell of, each time. */
  const asked = (wire: FakeWire): unknown[] =>
    wire.sent.flatMap(({ message }) => {
      if (!("method" in message)) return [];
      if (message.method === "resources/subscribe") return [message.params?.["uri"]];
      const filter = message.params?.["notifications"] as JsonObject | undefined;
      return message.method === "subscriptions/listen" ? [filter?.["resourceSubscriptions"]] : [];
    });

  it("are asked for at once, once for all sessions", async () => {
    const wire = make();
    const { connection } = bench({ command: "x" }, { openWire: () => wire });
    await connection.connect();
    connection.resume(sessionOf("a"), ["x://1", "x://2"]);
    connection.resume(sessionOf("b"), ["x://2"]);
    connection.resume(sessionOf("c"), ["x://3"]);
    connection.resume(sessionOf("d"), ["x://4"]);
    await settle();
    const all = ["x://1", "x://2", "x://3", "x://4"];
    if (era === "legacy") expect(asked(wire)).toEqual(all);
    else expect(asked(wire).at(-1)).toEqual(all);
    const before = asked(wire).length;
    expect(await connection.run({ kind: "subscribe", uri: "x://3" }, contextOf())).toEqual({});
    connection.resume(sessionOf("a"), ["x://1"]);
    await settle();
    expect(asked(wire)).toHaveLength(before);
    await connection.close();
  });

  it("are asked for by the next link if there is none now", async () => {
    const wire = make();
    const { connection } = bench({ command: "x" }, { openWire: () => wire });
    connection.resume(sessionOf("a"), ["x://1"]);
    await connection.connect();
    expect(asked(wire)).toEqual(era === "legacy" ? ["x://1"] : [["x://1"]]);
    await connection.close();
  });

  it("end with the session", async () => {
    const wire = make();
    const { connection } = bench({ command: "x" }, { openWire: () => wire });
    await connection.connect();
    connection.resume(sessionOf("a"), ["x://1"]);
    await settle();
    connection.endSession("a");
    await settle();
    if (era === "legacy") expect(wire.params("resources/unsubscribe")).toEqual({ uri: "x://1" });
    else expect(wire.methods()).toContain("notifications/cancelled");
    await connection.close();
  });
});
