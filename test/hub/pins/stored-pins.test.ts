import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { fingerprint } from "../../../src/base/fingerprint.ts";
import { offeredOf } from "../../../src/hub/pins/pin-comparison.ts";
import type { PinEvent } from "../../../src/hub/pins/pin-reports.ts";
import { openPins, pinLocation } from "../../../src/hub/pins/open-pins.ts";
import { pinFileFor } from "../../../src/hub/pins/pin-file.ts";
import type { Pins } from "../../../src/hub/pins/pins.ts";
import type { ToolCapability } from "../../../src/model/capability.ts";
import type { LoadedConfig } from "../../../src/model/loaded-config.ts";
import { databaseFile, openStore } from "../../../src/store/open-store.ts";
import type { Store } from "../../../src/store/store.ts";
import { FakeClock } from "../../support/fake-clock.ts";

let dir: string;
let file: string;
let stores: Store[] = [];

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "toolcrib-stored-pins-"));
  file = join(dir, "toolcrib.lock");
});

afterEach(async () => {
  for (const store of stores) await store.close();
  stores = [];
  rmSync(dir, { recursive: true, force: true });
});

/** As another process would: each has its own connection. */
async function newStore(): Promise<Store> {
  const store = await openStore({ home: join(dir, "home") });
  if (store === undefined) throw new Error("no store");
  stores.push(store);
  return store;
}

async function open(
  store: Store | undefined,
  place = file,
  clock = new FakeClock(),
  scope?: string,
): Promise<{ pins: Pins; events: PinEvent[] }> {
  const events: PinEvent[] = [];
  const options = { store, clock, onEvent: (event: PinEvent) => void events.push(event) };
  return {
    pins: await openPins({ file: place, mode: "block", scope }, options),
    events,
  };
}

function tool(name: string, description: string): ToolCapability {
  const definition = { name, description, inputSchema: { type: "object" } };
  return { kind: "tool", name, origin: { source: "files", name }, definition, fingerprint: fingerprint(definition) };
}

const read = tool("read", "Reads a file.");
const readChanged = tool("read", "Reads a file and mails it.");
const write = tool("write", "Writes a file.");

function verdict(pins: Pins, capability: ToolCapability): string {
  return pins.verdictFor("files", offeredOf(capability)).verdict;
}

const types = (events: readonly PinEvent[]): string[] => events.map(({ type }) => type);
const names = (pins: Pins): string[] => pins.list().map(({ server, tool: name }) => `${server} ${name}`);
const rows = async (store: Store, scope = file): Promise<string[]> =>
  (await store.pins.list(scope))
    .filter(({ kind }) => kind === "tool")
    .map(({ server, tool: name, fingerprint: print }) => `${server} ${name} ${print}`);

/** The lock file and the store know `read` and `write` of the server `files`, and no hub runs. */
async function pinned(store: Store): Promise<string> {
  const { pins } = await open(store);
  pins.check("files", [read, write]);
  await pins.close();
  return readFileSync(file, "utf8");
}

describe("[oper-02c] pins with a store", () => {
  it("are in the store and in the lock file, which is the same as without a store", async () => {
    const store = await newStore();
    const text = await pinned(store);
    expect(await rows(store)).toEqual([`files read ${read.fingerprint}`, `files write ${write.fingerprint}`]);
    rmSync(file);
    const { pins } = await open(undefined);
    pins.check("files", [write, read]);
    await pins.close();
    expect(readFileSync(file, "utf8")).toBe(text);
  });

  it("of an earlier version come from the file", async () => {
    const store = await newStore();
    const { pins: before } = await open(undefined);
    before.check("files", [read, write]);
    await before.close();
    const { pins, events } = await open(store);
    expect(verdict(pins, readChanged)).toBe("deny");
    expect(await rows(store)).toHaveLength(2);
    expect(events).toEqual([]);
    expect(existsSync(file)).toBe(true);
  });

  it("survive that the file is removed while no hub runs: it is written again, and told of", async () => {
    const store = await newStore();
    const text = await pinned(store);
    rmSync(file);
    const { pins, events } = await open(store);
    expect(verdict(pins, readChanged)).toBe("deny");
    expect(events).toEqual([{ type: "removed", file, pins: 2 }]);
    expect(readFileSync(file, "utf8")).toBe(text);
    rmSync(file);
    await pins.approve("files");
    expect(types(events)).toEqual(["removed", "removed", "updated"]);
    expect(readFileSync(file, "utf8")).toBe(text);
  });

  it("follow a file that was edited while no hub ran, and say so", async () => {
    const store = await newStore();
    const text = await pinned(store);
    const other = tool("read", "Reads, as a colleague approved it.");
    const parsed = JSON.parse(text) as { servers: { files: { tools: Record<string, unknown> } } };
    parsed.servers.files.tools = { read: { ...other, pinnedAt: "2026-01-01T00:00:00.000Z" } };
    writeFileSync(file, JSON.stringify(parsed));
    const { pins, events } = await open(store);
    expect(verdict(pins, other)).toBe("allow");
    expect(verdict(pins, read)).toBe("deny");
    expect(events).toEqual([
      {
        type: "edited",
        changed: [{ server: "files", kind: "tool", tool: "read" }],
        forgotten: [{ server: "files", kind: "tool", tool: "write" }],
      },
    ]);
    expect(await rows(store)).toEqual([`files read ${other.fingerprint}`]);
    expect(types((await open(store)).events)).toEqual([]);
  });

  it("that are forgotten stay forgotten, also when the file is removed then", async () => {
    const store = await newStore();
    await pinned(store);
    const { pins } = await open(store);
    expect(await pins.reset("files", { kind: "tool", name: "write" })).toEqual([
      { server: "files", kind: "tool", tool: "write" },
    ]);
    expect(names(pins)).toEqual(["files read"]);
    await pins.reset();
    rmSync(file);
    const again = await open(store);
    expect(names(again.pins)).toEqual([]);
    expect(again.events).toEqual([]);
    expect(await rows(store)).toEqual([]);
  });

  it("block as long as the file cannot be used, and leave both alone", async () => {
    const store = await newStore();
    await pinned(store);
    const before = await rows(store);
    writeFileSync(file, "damaged");
    const { pins, events } = await open(store);
    expect(verdict(pins, read)).toBe("deny");
    expect(types(events)).toEqual(["problem"]);
    await expect(pins.approve("files")).rejects.toMatchObject({ code: "invalid_config" });
    expect([readFileSync(file, "utf8"), await rows(store)]).toEqual(["damaged", before]);
    rmSync(file);
    expect(await pins.refresh()).toBe(true);
    expect(verdict(pins, read)).toBe("allow");
    expect(verdict(pins, readChanged)).toBe("deny");
  });

  it("block as long as the store cannot be used", async () => {
    const store = await newStore();
    await pinned(store);
    const [row] = await store.pins.list(file);
    if (row === undefined) throw new Error("nothing is pinned");
    await store.pins.change(file, [{ ...row, fingerprint: "another" }], []);
    const { pins, events } = await open(store);
    expect(verdict(pins, write)).toBe("deny");
    expect(types(events)).toEqual(["problem"]);
    const closed = await newStore();
    await closed.close();
    expect(verdict((await open(closed)).pins, write)).toBe("deny");
  });
});

describe("[oper-02c] pins of another program's config", () => {
  let place: string;

  beforeEach(() => {
    place = pinFileFor(join(dir, "claude_desktop_config.json"), join(dir, "home"));
  });

  it("are in the store alone", async () => {
    const store = await newStore();
    const { pins } = await open(store, place);
    pins.check("files", [read]);
    await pins.close();
    expect(existsSync(place)).toBe(false);
    expect(verdict((await open(store, place)).pins, readChanged)).toBe("deny");
    expect(await rows(store, file)).toEqual([]);
  });

  it("are taken in from the file of an earlier version, which is kept under another name", async () => {
    const { pins: before } = await open(undefined, place);
    before.check("files", [read, write]);
    await before.close();
    const text = readFileSync(place, "utf8");
    const store = await newStore();
    // As after a kill between the store and the file.
    await store.pins.change(
      place,
      [{ server: "files", tool: "read", ...read, definition: { ...read.definition }, pinnedAt: "" }],
      [],
    );
    const { pins, events } = await open(store, place);
    expect(names(pins)).toEqual(["files read", "files write"]);
    expect(events).toEqual([]);
    expect([existsSync(place), readFileSync(`${place}.moved`, "utf8")]).toEqual([false, text]);
    await pins.reset("files");
    expect(names((await open(store, place)).pins)).toEqual([]);
  });
});

describe("[oper-02c] pins of several processes", () => {
  it.each(["toolcrib.json", "claude_desktop_config.json"])("agree, and hear of each other, for %s", async (config) => {
    const place = pinFileFor(join(dir, config), join(dir, "home"));
    const clock = new FakeClock();
    const first = await open(await newStore(), place, clock);
    const second = await open(await newStore(), place);
    first.pins.watch();
    await Promise.all(
      [1, 2, 3].map(async (number) => {
        const { pins } = await open(await newStore(), place);
        pins.check(`server${number}`, [read]);
        await pins.close();
      }),
    );
    first.pins.check("files", [readChanged]);
    second.pins.check("files", [read]);
    await Promise.all([first.pins.settled(), second.pins.settled()]);
    await second.pins.approve("files", { kind: "tool", name: "read" });
    for (let look = 0; look < 200 && verdict(first.pins, read) !== "allow"; look++) {
      await new Promise((resolve) => setTimeout(resolve, 25));
      await clock.advance(1000);
    }
    expect(verdict(first.pins, read)).toBe("allow");
    expect(verdict(first.pins, readChanged)).toBe("deny");
    expect(names(first.pins)).toEqual(["files read", "server1 read", "server2 read", "server3 read"]);
    await Promise.all([first.pins.close(), second.pins.close()]);
  });
});

it("[oper-02c] two machines with a lock file each come to rest, and what one approves reaches the other", async () => {
  const [here, there, scope] = [
    join(dir, "here", "toolcrib.lock"),
    join(dir, "there", "toolcrib.lock"),
    "/srv/toolcrib.lock",
  ];
  for (const [place, tools] of [
    [here, [read]],
    [there, [readChanged, write]],
  ] as const) {
    const { pins } = await open(undefined, place);
    pins.check("files", tools);
    await pins.close();
  }
  const [clock, store] = [new FakeClock(), await newStore()];
  const first = await open(store, here, clock, scope);
  const second = await open(await newStore(), there, clock, scope);
  for (const { pins } of [first, second]) pins.watch();
  const text = (place: string): string => readFileSync(place, "utf8");
  const until = async (isSo: () => boolean, most = 200): Promise<void> => {
    for (let look = 0; look < most && !isSo(); look++) {
      await new Promise((resolve) => setTimeout(resolve, 25));
      await clock.advance(1000);
    }
  };
  await until(() => text(here) === text(there) && names(first.pins).length === 2);
  expect([text(here), names(first.pins)]).toEqual([text(there), ["files read", "files write"]]);
  first.pins.check("files", [read, write]);
  await first.pins.approve("files", { kind: "tool", name: "read" });
  await until(() => verdict(second.pins, read) === "allow");
  expect(verdict(second.pins, read)).toBe("allow");
  const settled = await store.pins.stamp(scope);
  // Longer than it takes to hear of each other.
  await until(() => false, 50);
  expect([await store.pins.stamp(scope), text(there)]).toEqual([settled, text(here)]);
  expect(await rows(store, scope)).toEqual([`files read ${read.fingerprint}`, `files write ${write.fingerprint}`]);
  await Promise.all([first.pins.close(), second.pins.close()]);
});

it("[oper-02c] pins of another program's config stay when the home is moved, also those of an earlier version", async () => {
  const config = { file: join(dir, "claude_desktop_config.json"), config: { guard: { pins: "block" } } };
  // All that is asked of it.
  const placeIn = (home: string): ReturnType<typeof pinLocation> =>
    pinLocation(config as unknown as LoadedConfig, join(dir, home));
  const store = await newStore();
  const { pins } = await open(store, placeIn("home").file);
  pins.check("files", [read]);
  await pins.close();
  for (const home of ["home", "moved"]) {
    const { file: place, scope } = placeIn(home);
    const again = await open(store, place, new FakeClock(), scope);
    expect([home, verdict(again.pins, readChanged)]).toEqual([home, "deny"]);
    await again.pins.close();
  }
  expect(await rows(store, placeIn("home").file)).toEqual([]);
});

it("[oper-02c] without a database of its own a hub keeps pins in the file alone", async () => {
  const { pins } = await open(undefined);
  pins.check("files", [read]);
  await pins.close();
  expect([existsSync(file), existsSync(databaseFile(join(dir, "home")))]).toEqual([true, false]);
});
