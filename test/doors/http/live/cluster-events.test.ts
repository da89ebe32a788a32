import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, it, onTestFinished, vi } from "vitest";
import { EventFeed, eventFilter, type Frame } from "../../../../src/doors/http/live/event-feed.ts";
import type { JsonObject } from "../../../../src/model/json.ts";
import { Redactor } from "../../../../src/secrets/redactor.ts";
import { Session } from "../../../../src/sessions/session.ts";
import { FakeClock } from "../../../support/fake-clock.ts";
import { operator, stagedHub } from "./fake-hub.ts";

const contract = vi.hoisted(() => ({ isBroken: true, failures: 0 }));

vi.mock("../../../../src/contract/websocket.ts", async (load) => {
  const whole = await load<typeof import("../../../../src/contract/websocket.ts")>();
  return {
    get EVENTS() {
      if (!contract.isBroken) return whole.EVENTS;
      contract.failures += 1;
      throw new Error("This file is gone.");
    },
  };
});

it("an event of another node that cannot be read is left out, and harms nothing", async () => {
  const rejections: unknown[] = [];
  const onRejection = (error: unknown): unknown => rejections.push(error);
  process.on("unhandledRejection", onRejection);
  onTestFinished(() => void process.off("unhandledRejection", onRejection));
  const listeners = new Map<string, (message: JsonObject, from: string) => void>();
  const nodes = {
    publish: () => {},
    subscribe: (topic: string, listener: (message: JsonObject, from: string) => void) => {
      listeners.set(topic, listener);
      return () => {};
    },
  };
  const feed = new EventFeed(await stagedHub(), new Redactor(), { clock: new FakeClock(), nodes });
  const frames: Frame[] = [];
  feed.subscribe({
    caller: operator,
    session: new Session(),
    wants: eventFilter(undefined),
    send: (frame) => frames.push(frame),
  });
  const fields = {
    ...{ callId: "1", time: "2026-01-01T00:00:00Z", session: "s", door: "mcp", role: null, user: null },
    ...{ kind: "tool", name: "read", serverId: null },
  };
  const arrive = (): void => listeners.get("feed-news")?.({ type: "call.started", fields, concern: {} }, "other");
  arrive();
  await vi.waitFor(() => expect(contract.failures).toBe(1));
  // Node reports a rejection at the end of a turn.
  for (let turn = 0; turn < 10; turn += 1) await nextTurn();
  expect([rejections, frames]).toEqual([[], []]);
  contract.isBroken = false;
  arrive();
  await vi.waitFor(() => expect(frames.map(({ type }) => type)).toEqual(["call.started"]));
  feed.close();
});
