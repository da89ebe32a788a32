import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { loadConfig } from "../../../src/config/load-config.ts";
import { fingerprint } from "../../../src/base/fingerprint.ts";
import { offeredOf } from "../../../src/hub/pins/pin-comparison.ts";
import { openPins, pinLocation } from "../../../src/hub/pins/open-pins.ts";
import type { PinEvent } from "../../../src/hub/pins/pin-reports.ts";
import type { Pins } from "../../../src/hub/pins/pins.ts";
import type { ToolCapability } from "../../../src/model/capability.ts";
import { systemClock } from "../../../src/base/clock.ts";
import { openStore } from "../../../src/store/open-store.ts";
import type { Store } from "../../../src/store/store.ts";
import { eventually } from "../../support/eventually.ts";

function tool(description: string): ToolCapability {
  const definition = { name: "read", description, inputSchema: { type: "object" } };
  return {
    kind: "tool",
    name: "read",
    origin: { source: "files", name: "read" },
    definition,
    fingerprint: fingerprint(definition),
  };
}

const before = tool("Reads a file.");
const after = tool("Reads a file and mails it.");

/** Each node has a lock file beside a config at a path of its own; any store will do. */
describe("[scale-08a] pins of nodes whose configs stand in different places", () => {
  let dir: string;
  const closing: (() => Promise<void>)[] = [];
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), "toolcrib-shared-pins-"));
  });
  afterEach(async () => {
    for (const close of closing.splice(0).toReversed()) await close();
    rmSync(dir, { recursive: true, force: true });
  });

  async function newStore(): Promise<Store> {
    const store = await openStore({ home: join(dir, "store") });
    if (store === undefined) throw new Error("no store");
    closing.push(() => store.close());
    return store;
  }

  async function open(name: string): Promise<{ pins: Pins; file: string; removals: () => number }> {
    const file = join(dir, name, "toolcrib.json");
    mkdirSync(dirname(file), { recursive: true });
    const config = { cluster: "nats://127.0.0.1:1", store: "postgres://nowhere/none", guard: { pins: "block" } };
    writeFileSync(file, JSON.stringify(config));
    const loaded = await loadConfig({ file, env: {}, cwd: dir, home: join(dir, name, "home") });
    const place = pinLocation(loaded, join(dir, name, "home"));
    let removals = 0;
    const onEvent = ({ type }: PinEvent): void => void (removals += type === "removed" ? 1 : 0);
    const pins = await openPins(place, { store: await newStore(), clock: systemClock, onEvent });
    closing.push(() => pins.close());
    pins.watch();
    return { pins, file: place.file, removals: () => removals };
  }

  const verdict = (pins: Pins, capability: ToolCapability): string =>
    pins.verdictFor("files", offeredOf(capability)).verdict;

  it("are the same, and a yes to a change on one counts on the other", async () => {
    const [one, two] = [await open("one"), await open("two")];
    one.pins.check("files", [before]);
    await one.pins.settled();
    await eventually(() => two.pins.list().length === 1, "known at the other");
    for (const { pins } of [one, two]) {
      pins.check("files", [after]);
      expect(verdict(pins, after)).toBe("deny");
    }
    await one.pins.approve("files");
    await eventually(() => verdict(two.pins, after) === "allow", "the quarantine is lifted");
    await eventually(() => readFileSync(two.file, "utf8").includes("mails"), "and in the lock file");
  });

  it("an old lock file of a node that was away takes nothing back", async () => {
    const [one, two] = [await open("one"), await open("two")];
    one.pins.check("files", [before]);
    await one.pins.settled();
    await eventually(() => two.pins.list().length === 1, "known at the other");
    await eventually(() => readFileSync(two.file, "utf8").includes("Reads"), "written there");
    await two.pins.close();
    one.pins.check("files", [after]);
    await one.pins.approve("files");
    const again = await open("two");
    again.pins.check("files", [after]);
    expect(verdict(again.pins, after)).toBe("allow");
    expect(verdict(one.pins, after)).toBe("allow");
  });

  it("a lock file that a node never had is not told of as removed; one that it had is, also after a start", async () => {
    const one = await open("one");
    one.pins.check("files", [before]);
    await one.pins.settled();
    const two = await open("two");
    expect(readFileSync(two.file, "utf8")).toContain("Reads");
    expect([one.removals(), two.removals()]).toEqual([0, 0]);
    await two.pins.close();
    rmSync(two.file);
    expect((await open("two")).removals()).toBe(1);
  });
});
