import { describe, expect, it } from "vitest";
import { ResourceLinks, Session } from "../../src/sessions/session.ts";

describe("[gate-03] the links that a session was given", () => {
  it("are remembered with who gave them last", () => {
    const links = new ResourceLinks();
    links.add("x://1", "a");
    links.add("x://1", "b");
    expect([links.sourceOf("x://1"), links.sourceOf("x://2"), links.size]).toEqual(["b", undefined, 1]);
  });

  it("are bounded: the oldest makes room, and what is too long is left out", () => {
    const links = new ResourceLinks();
    for (let i = 0; i < 1000; i += 1) links.add(`x://${i}`, "a");
    links.add("x://0", "a");
    links.add("x://1000", "a");
    expect(links.size).toBe(1000);
    expect(["x://0", "x://1", "x://2", "x://1000"].map((uri) => links.sourceOf(uri))).toEqual([
      "a",
      undefined,
      "a",
      "a",
    ]);
    links.add(`x://${"y".repeat(5000)}`, "a");
    expect(links.sourceOf("x://2")).toBe("a");
  });

  it("belong to one session, unless it shares another's", () => {
    const session = new Session();
    session.links.add("x://1", "a");
    expect(new Session().links.sourceOf("x://1")).toBeUndefined();
    expect(new Session({ links: session.links }).links.sourceOf("x://1")).toBe("a");
  });
});
