import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { fingerprint } from "../../../src/base/fingerprint.ts";
import { offeredOf, type PinMode } from "../../../src/hub/pins/pin-comparison.ts";
import { pinFileFor, pinsInFile } from "../../../src/hub/pins/pin-file.ts";
import type { PinEvent } from "../../../src/hub/pins/pin-reports.ts";
import { Pins } from "../../../src/hub/pins/pins.ts";
import type { ResourceCapability, ToolCapability } from "../../../src/model/capability.ts";
import type { ToolDefinition } from "../../../src/model/protocol.ts";
import { FakeClock } from "../../support/fake-clock.ts";

const dirs = new Set<string>();

afterEach(() => {
  for (const dir of dirs) rmSync(dir, { recursive: true, force: true });
  dirs.clear();
});

function newFile(): string {
  const dir = mkdtempSync(join(tmpdir(), "toolcrib-pins-"));
  dirs.add(dir);
  return join(dir, "toolcrib.lock");
}

function tool(name: string, description: string, more: Partial<ToolDefinition> = {}): ToolCapability {
  const definition = { name, description, inputSchema: { type: "object" }, ...more };
  return { kind: "tool", name, origin: { source: "files", name }, definition, fingerprint: fingerprint(definition) };
}

async function open(
  file: string,
  mode: PinMode = "block",
  clock = new FakeClock(),
): Promise<{ pins: Pins; events: PinEvent[] }> {
  const events: PinEvent[] = [];
  const storage = pinsInFile(file);
  return { pins: await Pins.open({ storage, mode, clock, onEvent: (event) => events.push(event) }), events };
}

function verdict(pins: Pins, server: string, capability: ToolCapability): string {
  return pins.verdictFor(server, offeredOf(capability)).verdict;
}

const read = tool("read", "Reads a file.");
const readChanged = tool("read", "Reads a file and mails it.");
const write = tool("write", "Writes a file.");

/** A file in which `read` and `write` of the server `files` are pinned. */
async function pinnedFile(): Promise<string> {
  const file = newFile();
  const { pins } = await open(file);
  pins.check("files", [write, read]);
  await pins.close();
  return file;
}

describe("[guard-15a] first use records", () => {
  it("writes what is seen for the first time: sorted, with fingerprint and definition, readable by others", async () => {
    const file = newFile();
    const { pins, events } = await open(file);
    pins.check("files", [
      write,
      tool("read", "Reads.", { annotations: { readOnlyHint: true }, _meta: { b: 1, a: 2 } }),
    ]);
    pins.check("calc", [tool("add", "Adds.")]);
    await pins.close();
    expect(events).toEqual([
      {
        type: "recorded",
        server: "files",
        pins: [
          { server: "files", kind: "tool", tool: "write" },
          { server: "files", kind: "tool", tool: "read" },
        ],
        later: false,
      },
      { type: "recorded", server: "calc", pins: [{ server: "calc", kind: "tool", tool: "add" }], later: false },
    ]);
    const text = readFileSync(file, "utf8");
    const parsed = JSON.parse(text) as { version: number; servers: Record<string, { tools: Record<string, object> }> };
    expect(Object.keys(parsed.servers)).toEqual(["calc", "files"]);
    expect(Object.keys(parsed.servers["files"]?.tools ?? {})).toEqual(["read", "write"]);
    expect(parsed.servers["files"]?.tools["write"]).toEqual({
      definition: write.definition,
      fingerprint: write.fingerprint,
      pinnedAt: "1970-01-01T00:16:40.000Z",
    });
    expect(text).toContain('"_meta": {\n              "a": 2,\n              "b": 1\n');
    expect(statSync(file).mode & 0o777).toBe(0o644);
  });

  it("compares in the next process, whatever the order of keys, and writes nothing when nothing is new", async () => {
    const file = await pinnedFile();
    const before = statSync(file);
    const { pins, events } = await open(file);
    const reordered = JSON.parse(
      '{"inputSchema":{"type":"object"},"description":"Reads a file.","name":"read"}',
    ) as ToolDefinition;
    pins.check("files", [{ ...read, definition: reordered, fingerprint: fingerprint(reordered) }, write]);
    await pins.close();
    expect(events).toEqual([]);
    expect(statSync(file).ino).toBe(before.ino);
    expect(pins.list().map(({ tool: name, state }) => `${name} ${state}`)).toEqual(["read same", "write same"]);
  });

  it("does not pin in-process tools, nor anything when off", async () => {
    const file = newFile();
    const { pins } = await open(file);
    pins.check("local", [read]);
    await pins.close();
    const off = (await open(file, "off")).pins;
    off.check("files", [read]);
    await off.close();
    expect(existsSync(file)).toBe(false);
  });

  it("two processes that start together keep each other's pins, and the first one's definition counts", async () => {
    const file = newFile();
    const [one, two] = [await open(file), await open(file)];
    one.pins.check("files", [read]);
    await one.pins.settled();
    two.pins.check("files", [readChanged, write]);
    expect(verdict(two.pins, "files", readChanged)).toBe("allow");
    await two.pins.settled();
    expect(verdict(two.pins, "files", readChanged)).toBe("deny");
    expect(two.events.filter(({ type }) => type === "changed")).toHaveLength(1);
    expect((await open(file)).pins.list().map((pin) => pin.tool)).toEqual(["read", "write"]);
  });

  it("many at once lose nothing", async () => {
    const file = newFile();
    const all = await Promise.all(Array.from({ length: 12 }, async () => (await open(file)).pins));
    for (const [index, pins] of all.entries()) pins.check(`server${index}`, [read]);
    await Promise.all(all.map((pins) => pins.close()));
    expect((await open(file)).pins.list()).toHaveLength(12);
  });

  it("the file stands beside the config, or in the home", () => {
    expect(pinFileFor("/project/toolcrib.json", "/home/ada/.toolcrib")).toBe("/project/toolcrib.lock");
    expect(pinFileFor(null, "/home/ada/.toolcrib")).toBe("/home/ada/.toolcrib/toolcrib.lock");
    expect(pinFileFor("/home/ada/Claude/claude_desktop_config.json", "/home/ada/.toolcrib")).toMatch(
      /^\/home\/ada\/\.toolcrib\/locks\/[0-9a-f]{12}\.lock$/,
    );
  });

  it("goes on without a file where none can be written, and says so once", async () => {
    const file = newFile();
    writeFileSync(file, "a file in the place of a folder");
    const { pins, events } = await open(join(file, "folder", "toolcrib.lock"));
    pins.check("files", [read]);
    await pins.settled();
    pins.check("files", [read, write]);
    await pins.close();
    expect(events.map(({ type }) => type)).toEqual(["recorded", "problem", "held"]);
    expect(verdict(pins, "files", read)).toBe("allow");
    expect(verdict(pins, "files", readChanged)).toBe("deny");
  });
});

describe("[guard-15b] a change is reported", () => {
  it("once, with the diff, and again when it changes again", async () => {
    const { pins, events } = await open(await pinnedFile());
    pins.check("files", [readChanged, write]);
    pins.check("files", [readChanged, write]);
    expect(events).toEqual([
      {
        type: "changed",
        pin: { server: "files", kind: "tool", tool: "read" },
        diff: ["~ description:", "    Reads a [-file.-]{+file and mails it.+}"],
      },
    ]);
    pins.check("files", [tool("read", "Reads a file and sells it."), write]);
    expect(events).toHaveLength(2);
    await pins.close();
  });

  it.each([
    ["off", "allow"],
    ["warn", "allow"],
    ["ask", "ask"],
    ["block", "deny"],
  ] as const)("under %s the verdict is %s, and only for what changed or is new", async (mode, expected) => {
    const { pins } = await open(await pinnedFile(), mode);
    pins.check("files", [readChanged, write]);
    expect(verdict(pins, "files", readChanged)).toBe(expected);
    expect(verdict(pins, "files", write)).toBe("allow");
    expect(verdict(pins, "files", tool("fresh", "New."))).toBe(expected);
    expect(verdict(pins, "other", readChanged)).toBe("allow");
    await pins.close();
  });

  it("speaks to policy of every kind by itself: a prompt with the name of a changed tool is another thing", async () => {
    const { pins } = await open(newFile());
    pins.check("files", [read, write]);
    expect(pins.objectionTo(read)).toBeUndefined();
    expect(pins.objectionTo(readChanged)).toEqual({
      verdict: "deny",
      rule: { level: "pin", list: "pins", pattern: `block ${readChanged.fingerprint}`, where: pins.file },
    });
    const unlisted = {
      kind: "resource",
      name: "x:y",
      origin: { source: "files", name: "x:y" },
      definition: { uri: "x:y", name: "x:y" },
      fingerprint: "",
    } as const;
    expect(pins.objectionTo(unlisted)).toBeUndefined();
    await pins.close();
  });

  it("asks about one definition: the rule of the next change is another", async () => {
    const { pins } = await open(await pinnedFile(), "ask");
    const rules = [readChanged, tool("read", "Reads a file and sells it.")].map((each) => {
      const asked = pins.verdictFor("files", offeredOf(each));
      return asked.verdict === "allow" ? undefined : asked.rule.pattern;
    });
    expect(rules[0]).toContain(readChanged.fingerprint);
    expect(rules[1]).not.toBe(rules[0]);
  });

  it.each(["ask", "block"] as const)(
    "[trust-08a] under %s a new tool of a pinned server is held, and reported once",
    async (mode) => {
      const file = await pinnedFile();
      const before = readFileSync(file, "utf8");
      const { pins, events } = await open(file, mode);
      const renamed = tool("read2", "Reads a file and mails it.");
      pins.check("files", [write, renamed]);
      pins.check("files", [read, write, renamed]);
      await pins.settled();
      expect(events).toEqual([
        { type: "held", server: "files", pins: [{ server: "files", kind: "tool", tool: "read2" }] },
      ]);
      expect(readFileSync(file, "utf8")).toBe(before);
      expect(pins.list().find(({ tool: name }) => name === "read2")).toMatchObject({ state: "new", pinnedAt: "" });
      expect(pins.diff("files")).toMatchObject([{ tool: "read2", state: "new", before: null }]);
      expect(pins.diff("files")[0]?.diff.join()).toContain("mails it");
      await pins.approve("files");
      expect(verdict(pins, "files", renamed)).toBe("allow");
      // What was approved is compared from now on.
      expect(verdict(pins, "files", tool("read2", "Sells it."))).not.toBe("allow");
      await pins.close();
    },
  );

  it("[trust-08a] under warn a new tool of a pinned server is pinned with a report, once", async () => {
    const { pins, events } = await open(await pinnedFile(), "warn");
    const renamed = tool("read2", "Reads a file and mails it.");
    pins.check("files", [write, renamed]);
    pins.check("calc", [read]);
    pins.check("files", [write, renamed]);
    await pins.close();
    expect(events).toEqual([
      { type: "recorded", server: "files", pins: [{ server: "files", kind: "tool", tool: "read2" }], later: true },
      { type: "recorded", server: "calc", pins: [{ server: "calc", kind: "tool", tool: "read" }], later: false },
    ]);
  });

  it("the verdict holds before the change was reported", async () => {
    const { pins } = await open(await pinnedFile());
    expect(verdict(pins, "files", readChanged)).toBe("deny");
  });

  it("a tool that disappears and comes back changed is still compared; a server that is down has lost nothing", async () => {
    const { pins, events } = await open(await pinnedFile());
    pins.check("files", [write]);
    expect(pins.list().map(({ state }) => state)).toEqual(["gone", "same"]);
    pins.check("files", []);
    expect(pins.list().map(({ state }) => state)).toEqual(["gone", "same"]);
    pins.check("files", [readChanged, write]);
    expect(events.map(({ type }) => type)).toEqual(["changed"]);
    expect(verdict(pins, "files", readChanged)).toBe("deny");
    await pins.close();
  });
});

describe("[guard-15b] a lock file that is removed while in use", () => {
  async function running(file: string): Promise<{ pins: Pins; events: PinEvent[]; clock: FakeClock }> {
    const clock = new FakeClock();
    const opened = await open(file, "block", clock);
    opened.pins.check("files", [readChanged, write]);
    opened.pins.watch();
    opened.events.length = 0;
    return { ...opened, clock };
  }

  it("unblocks nothing, is told of once, and is written again", async () => {
    const file = await pinnedFile();
    const before = readFileSync(file, "utf8");
    const { pins, events, clock } = await running(file);
    rmSync(file);
    await clock.advance(1000);
    await pins.settled();
    await clock.advance(3000);
    expect(verdict(pins, "files", readChanged)).toBe("deny");
    expect(events.filter(({ type }) => type !== "updated")).toEqual([{ type: "removed", file, pins: 2 }]);
    expect(readFileSync(file, "utf8")).toBe(before);
    await pins.close();
    expect(verdict((await open(file)).pins, "files", readChanged)).toBe("deny");
  });

  it("forgets nothing through what is written meanwhile either", async () => {
    const file = await pinnedFile();
    const { pins, events } = await running(file);
    rmSync(file);
    // Before anybody has looked: a new server, and an approval of another tool.
    pins.check("calc", [read]);
    await pins.settled();
    expect(verdict(pins, "files", readChanged)).toBe("deny");
    rmSync(file);
    await pins.approve("files", { kind: "tool", name: "write" });
    expect(events.filter(({ type }) => type === "removed")).toHaveLength(2);
    expect(verdict(pins, "files", readChanged)).toBe("deny");
    await pins.close();
    expect((await open(file)).pins.list().map((pin) => `${pin.server} ${pin.tool}`)).toEqual([
      "calc read",
      "files read",
      "files write",
    ]);
  });

  it("forgets nothing when it is damaged first", async () => {
    const file = await pinnedFile();
    const { pins, clock } = await running(file);
    writeFileSync(file, "damaged");
    await clock.advance(1000);
    expect(verdict(pins, "files", write)).toBe("deny");
    rmSync(file);
    await clock.advance(1000);
    await pins.settled();
    expect(verdict(pins, "files", write)).toBe("allow");
    expect(verdict(pins, "files", readChanged)).toBe("deny");
    await pins.close();
  });

  it("stays unusable when it was damaged from the beginning", async () => {
    const file = newFile();
    writeFileSync(file, "damaged");
    const { pins, clock } = await running(file);
    rmSync(file);
    await clock.advance(1000);
    expect(verdict(pins, "files", readChanged)).toBe("deny");
    await pins.close();
    expect(existsSync(file)).toBe(false);
  });

  it("a file that forgets or changes pins counts, and what it changed is told", async () => {
    const file = await pinnedFile();
    const { pins, events, clock } = await running(file);
    await (await open(file)).pins.reset("files");
    await clock.advance(1000);
    expect(verdict(pins, "files", readChanged)).toBe("allow");
    expect(events[0]).toEqual({
      type: "edited",
      changed: [],
      forgotten: [
        { server: "files", kind: "tool", tool: "read" },
        { server: "files", kind: "tool", tool: "write" },
      ],
    });
    // A server that was forgotten is seen for the first time again.
    expect(events[1]).toEqual({
      type: "recorded",
      server: "files",
      pins: [
        { server: "files", kind: "tool", tool: "read" },
        { server: "files", kind: "tool", tool: "write" },
      ],
      later: false,
    });
    await pins.close();
  });

  it("where it cannot be written again, what is known still holds", async () => {
    const file = await pinnedFile();
    const { pins, events, clock } = await running(file);
    rmSync(join(file, ".."), { recursive: true });
    writeFileSync(join(file, ".."), "a file in the place of the folder");
    await clock.advance(1000);
    await pins.settled();
    await clock.advance(1000);
    expect(verdict(pins, "files", readChanged)).toBe("deny");
    expect(events.map(({ type }) => type).filter((type) => type !== "updated")).toEqual(["removed", "problem"]);
    await pins.close();
  });
});

describe("[guard-15c] approving and forgetting", () => {
  it("approves one tool, or all that changed, for this process and the next", async () => {
    const file = await pinnedFile();
    const { pins, events } = await open(file);
    const writeChanged = tool("write", "Writes anything.");
    pins.check("files", [readChanged, writeChanged]);
    expect(pins.diff().map((each) => each.tool)).toEqual(["read", "write"]);
    expect(pins.diff("files", { kind: "tool", name: "write" })).toMatchObject([
      { before: write.fingerprint, after: writeChanged.fingerprint },
    ]);
    expect(await pins.approve("files", { kind: "tool", name: "read" })).toMatchObject([
      { tool: "read", after: readChanged.fingerprint },
    ]);
    expect(verdict(pins, "files", readChanged)).toBe("allow");
    expect(verdict(pins, "files", writeChanged)).toBe("deny");
    await pins.approve("files");
    expect(pins.diff()).toEqual([]);
    expect(events.filter(({ type }) => type === "approved")).toEqual([
      { type: "approved", server: "files", pins: [{ server: "files", kind: "tool", tool: "read" }] },
      { type: "approved", server: "files", pins: [{ server: "files", kind: "tool", tool: "write" }] },
    ]);
    expect(verdict((await open(file)).pins, "files", writeChanged)).toBe("allow");
    // What was approved is what counts from now on, not what was there first.
    expect(verdict((await open(file)).pins, "files", write)).toBe("deny");
  });

  it("refuses to approve what is not offered", async () => {
    const { pins } = await open(await pinnedFile());
    await expect(pins.approve("files", { kind: "tool", name: "read" })).rejects.toMatchObject({ code: "not_found" });
  });

  it("an approval in another process counts without a restart", async () => {
    const file = await pinnedFile();
    const clock = new FakeClock();
    const hub = await open(file, "block", clock);
    hub.pins.check("files", [readChanged, write]);
    hub.pins.watch();
    const terminal = await open(file);
    terminal.pins.check("files", [readChanged, write]);
    await terminal.pins.approve("files", { kind: "tool", name: "read" });
    await clock.advance(1000);
    expect(verdict(hub.pins, "files", readChanged)).toBe("allow");
    expect(hub.events.at(-1)).toEqual({ type: "updated" });
    await hub.pins.close();
    expect(clock.pending).toBe(0);
  });

  it("forgets a server, or all; what is offered then is pinned anew", async () => {
    const file = await pinnedFile();
    const { pins } = await open(file);
    pins.check("calc", [read]);
    await pins.settled();
    expect(await (await open(file)).pins.reset("files")).toEqual([
      { server: "files", kind: "tool", tool: "read" },
      { server: "files", kind: "tool", tool: "write" },
    ]);
    const next = await open(file);
    expect(next.pins.list().map((pin) => pin.server)).toEqual(["calc"]);
    next.pins.check("files", [readChanged]);
    await next.pins.close();
    expect(verdict(next.pins, "files", readChanged)).toBe("allow");
    expect(await (await open(file)).pins.reset()).toHaveLength(2);
    expect((await open(file)).pins.list()).toEqual([]);
  });
});

describe("[guard-15b] a lock file that cannot be used", () => {
  const cases: [what: string, text: (good: string) => string, says: RegExp][] = [
    ["that is no JSON", () => "{", /is not valid JSON/],
    ["of an unfinished merge", (good) => `<<<<<<< ours\n${good}`, /unfinished merge/],
    ["of a newer version", (good) => good.replace('"version": 2', '"version": 3'), /version 3/],
    ["without servers", () => '{"version":1}', /no servers/],
    ["with a definition that was edited", (good) => good.replace("Reads a file.", "Reads and mails."), /fingerprint/],
  ];

  it.each(cases)("%s: fails closed, says why once, and is left alone", async (_what, text, says) => {
    const file = await pinnedFile();
    const broken = text(readFileSync(file, "utf8"));
    writeFileSync(file, broken);
    const { pins, events } = await open(file);
    expect(events).toEqual([
      { type: "problem", message: expect.stringMatching(says) as string, hint: expect.any(String) as string },
    ]);
    pins.check("files", [read, write]);
    expect(verdict(pins, "files", read)).toBe("deny");
    expect(verdict((await open(file, "ask")).pins, "files", read)).toBe("ask");
    expect(verdict((await open(file, "warn")).pins, "files", read)).toBe("allow");
    // The user's own code needs no pin.
    expect(verdict(pins, "local", read)).toBe("allow");
    await expect(pins.approve("files", { kind: "tool", name: "read" })).rejects.toMatchObject({
      code: "invalid_config",
    });
    await pins.close();
    expect(readFileSync(file, "utf8")).toBe(broken);
    expect(events).toHaveLength(1);
  });

  it("is used again once it is repaired, and given up when it is damaged while in use", async () => {
    const file = await pinnedFile();
    const good = readFileSync(file, "utf8");
    const { pins, events } = await open(file);
    pins.check("files", [read, write]);
    writeFileSync(file, "damaged");
    pins.check("calc", [read]);
    await pins.settled();
    expect(verdict(pins, "files", read)).toBe("deny");
    writeFileSync(file, good);
    expect(await pins.refresh()).toBe(true);
    expect(verdict(pins, "files", read)).toBe("allow");
    await pins.close();
    expect((await open(file)).pins.list().map((pin) => pin.server)).toEqual(["calc", "files", "files"]);
    expect(events.map(({ type }) => type)).toEqual(["recorded", "problem", "updated"]);
  });

  it("a folder in its place is a problem and no crash", async () => {
    const file = newFile();
    mkdirSync(file);
    const { pins, events } = await open(file);
    pins.check("files", [read]);
    await pins.close();
    expect(events).toMatchObject([{ type: "problem" }]);
    expect(verdict(pins, "files", read)).toBe("deny");
  });
});

describe("resources under other spellings of their URI", () => {
  function resource(uri: string, description?: string): ResourceCapability {
    const definition = { uri, name: "a", description };
    const origin = { source: "files", name: uri };
    return { kind: "resource", name: uri, origin, definition, fingerprint: fingerprint(definition) };
  }
  const unlisted = (uri: string): ResourceCapability => ({ ...resource(uri), fingerprint: "" });

  it("[trust-08b] are held while the listed one is, and usable otherwise", async () => {
    const file = newFile();
    const listed = [resource("x://a"), resource("Y://b/%63")];
    const first = (await open(file)).pins;
    first.check("files", listed);
    for (const uri of ["X://a", "x://a#f", "x://elsewhere"]) expect(first.objectionTo(unlisted(uri))).toBeUndefined();
    await first.close();

    const { pins } = await open(file);
    pins.check("files", [resource("x://a", "other"), resource("Y://b/%63", "other"), resource("x://kept")]);
    const deny = expect.objectContaining({ verdict: "deny" }) as unknown;
    for (const uri of ["x://a", "X://a", "x://a#f", " x://a", "y://b/c", `x://${"%25".repeat(3000)}`]) {
      expect(pins.objectionTo(unlisted(uri)), uri).toEqual(deny);
    }
    expect(pins.objectionTo(unlisted("x://elsewhere"))).toBeUndefined();
    const other = { ...unlisted("X://a"), origin: { source: "others", name: "X://a" } };
    expect(pins.objectionTo(other)).toBeUndefined();
    await pins.approve("files");
    expect(pins.objectionTo(unlisted("X://a"))).toBeUndefined();
    await pins.close();
  });
});

describe("hidden characters in the lock file", () => {
  it("[trust-15b] are escaped, and reading gives the same definition", async () => {
    const file = newFile();
    const hidden = "a\u009b\u202e\u200b\u{e0041}\ud800\u2028z";
    const shady = tool("shady", hidden);
    const { pins } = await open(file);
    pins.check("files", [shady]);
    await pins.close();
    const text = readFileSync(file, "utf8");
    expect(text).toMatch(/^[\n\x20-\x7e]+$/);
    expect(text).toContain("\\u202e");
    const again = (await open(file)).pins;
    expect(again.problem).toBeUndefined();
    expect(verdict(again, "files", shady)).toBe("allow");
  });
});
