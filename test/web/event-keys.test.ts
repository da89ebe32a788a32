import { describe, expect, it } from "vitest";
import { OPERATIONS } from "../../src/contract/operations.ts";
import { EVENTS } from "../../src/contract/websocket.ts";
import { OUTDATED_BY } from "../../web/src/state/event-keys.ts";

describe("what events make out of date", () => {
  it("[oper-10a] is said for every event of the hub, in operations that only read", () => {
    expect(Object.keys(OUTDATED_BY).toSorted()).toEqual(Object.keys(EVENTS).toSorted());
    const named = new Set(Object.values(OUTDATED_BY).flatMap((names) => (names === "everything" ? [] : names)));
    for (const name of named) {
      expect(OPERATIONS).toHaveProperty(name);
      expect(name).toMatch(/^(list|get|overview|scan)/);
    }
  });

  it("[oper-10a] is everything when events were lost", () => {
    expect(OUTDATED_BY["events.lost"]).toBe("everything");
  });
});
