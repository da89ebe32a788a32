import { pathToFileURL } from "node:url";
import { describe, expect, it } from "vitest";
import { KeptResults, ResultBudget } from "../../src/sessions/kept-results.ts";
import { Session } from "../../src/sessions/session.ts";

describe("Session", () => {
  it("[spine-12a] offers its workspace folder as a root", () => {
    const session = new Session({ workspaceDir: "/tmp/some where" });
    expect(session.roots).toEqual([{ uri: pathToFileURL("/tmp/some where").href, name: "some where" }]);
    expect(new Session().roots).toEqual([]);
  });

  it("leaves out what it was not given, and is an owner's unless it says otherwise", () => {
    const session = new Session();
    expect("role" in session).toBe(false);
    expect("onSample" in session).toBe(false);
    expect(session).toMatchObject({ owner: true, door: "library", closed: false });
    expect(new Session({ owner: false, role: "reviewer", door: "mcp" })).toMatchObject({
      owner: false,
      role: "reviewer",
      door: "mcp",
    });
  });

  it("closes once, tells who opened it, and drops what it kept", () => {
    let told = 0;
    const session = new Session({}, () => told++);
    const uri = session.results.keep("1", "text");
    session.close();
    session.close();
    expect(told).toBe(1);
    expect(session.closing.aborted).toBe(true);
    expect(session.results.read(uri)).toBeUndefined();
  });
});

describe("KeptResults", () => {
  it("keeps a text under its own URI", () => {
    const results = new KeptResults();
    const uri = results.keep("abc", "whole");
    expect(uri).toBe("toolcrib://results/abc");
    expect(KeptResults.owns(uri)).toBe(true);
    expect(KeptResults.owns("file:///etc/passwd")).toBe(false);
    expect(results.read(uri)).toEqual({ contents: [{ uri, mimeType: "text/plain", text: "whole" }] });
  });

  it("makes room by dropping the oldest, never the newest", () => {
    const results = new KeptResults();
    const big = "x".repeat(30 * 1024 * 1024);
    const uris = ["1", "2", "3"].map((id) => results.keep(id, big));
    expect(uris.map((uri) => results.read(uri) !== undefined)).toEqual([false, true, true]);
    const huge = results.keep("4", "y".repeat(65 * 1024 * 1024));
    expect(results.read(huge)).toBeDefined();
    expect(results.read(uris[2] ?? "")).toBeUndefined();
  });

  it("replaces a text that is kept again", () => {
    const results = new KeptResults();
    results.keep("1", "old");
    const uri = results.keep("1", "new");
    expect(results.read(uri)?.contents[0]?.text).toBe("new");
  });

  it("gives back what it was told of a text with each read", () => {
    const results = new KeptResults();
    const uri = results.keep("1", "{}", { mimeType: "application/json", meta: { mark: 1 } });
    expect(results.read(uri)).toEqual({
      contents: [{ uri, mimeType: "application/json", text: "{}" }],
      _meta: { mark: 1 },
    });
  });

  it("[gate-06b] shares its room with other sessions: the oldest text of all goes first", () => {
    const room = new ResultBudget(10);
    const [first, second] = [new KeptResults(room), new KeptResults(room)];
    const oldest = first.keep("1", "aaaa");
    const next = second.keep("2", "bbbb");
    const newest = first.keep("3", "cccc");
    expect(first.read(oldest)).toBeUndefined();
    expect(second.read(next)).toBeDefined();
    expect(first.read(newest)).toBeDefined();
    expect(room.bytes).toBe(8);
    const huge = second.keep("4", "é".repeat(20));
    expect([first.read(newest), second.read(next)]).toEqual([undefined, undefined]);
    expect(second.read(huge)).toBeDefined();
    second.clear();
    expect(room.bytes).toBe(0);
  });
});
