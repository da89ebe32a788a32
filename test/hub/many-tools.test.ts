/** What it costs a program to register thousands of tools, counted by how often the tools are looked at. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { createHub } from "../../src/hub/create/create-hub.ts";
import type { Hub } from "../../src/hub/hub.ts";
import type { Tool } from "../../src/model/tool.ts";
import { ToolRegistry } from "../../src/tools/tool-registry.ts";
import { tool } from "../tools/support.ts";

const open: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of open.splice(0)) await close();
});

async function hubOf(registry: ToolRegistry): Promise<Hub> {
  const home = mkdtempSync(join(tmpdir(), "toolcrib-many-"));
  const hub = await createHub({}, { registry, home });
  open.push(async () => {
    await hub.close();
    rmSync(home, { recursive: true, force: true });
  });
  return hub;
}

/** Counts how often names are read. */
class CountedTools {
  reads = 0;

  make(name: string): Tool {
    const count = (): void => void this.reads++;
    return Object.defineProperty(tool(name), "name", {
      enumerable: true,
      get() {
        count();
        return name;
      },
    });
  }
}

const PAUSES = {
  "without a pause": () => undefined,
  "with an await between them": () => Promise.resolve(),
};

describe("[speed-08a] registering tools one by one", () => {
  it.each(Object.entries(PAUSES))("takes four times the work for four times the tools, %s", async (_how, pause) => {
    const work = async (count: number): Promise<number> => {
      const registry = new ToolRegistry();
      const hub = await hubOf(registry);
      const counted = new CountedTools();
      for (let each = 0; each < count; each++) {
        registry.register(counted.make(`tool_${each}`));
        await pause();
      }
      expect(hub.tools()).toHaveLength(count);
      return counted.reads;
    };
    const [small, large] = [await work(500), await work(2000)];
    expect(large / small).toBeLessThan(4.5);
  });

  it("makes few versions even if each comes in a turn of its own", async () => {
    const registry = new ToolRegistry();
    const hub = await hubOf(registry);
    let versions = 0;
    hub.on("catalog", () => versions++);
    for (let each = 0; each < 2000; each++) {
      registry.register(tool(`tool_${each}`));
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(hub.tools()).toHaveLength(2000);
    await expect.poll(() => versions).toBeGreaterThan(0);
    expect(versions).toBeLessThan(500);
  });

  it("is the same for factories and mirrored tools", () => {
    const work = (count: number): number => {
      const registry = new ToolRegistry();
      const counted = new CountedTools();
      for (let each = 0; each < count; each++) {
        registry.registerFactory(() => counted.make(`made_${each}`));
        registry.register(counted.make(`mirrored_${each}`), { origin: "mcp" });
      }
      for (let each = 0; each < count; each++) registry.unregister(`mirrored_${each}`);
      expect(registry.size).toBe(count);
      return counted.reads;
    };
    expect(work(2000) / work(500)).toBeLessThan(4.5);
  });

  it("makes one version of a burst, and a tool can be seen and called as soon as it is registered", async () => {
    const registry = new ToolRegistry();
    const hub = await hubOf(registry);
    const versions: number[] = [];
    hub.on("catalog", () => versions.push(hub.tools().length));
    for (let each = 0; each < 50; each++) {
      registry.register(tool(`tool_${each}`));
      await Promise.resolve();
    }
    expect(hub.tools()).toHaveLength(50);
    const called = await hub.call({ name: "tool_49", arguments: { a: 1 } });
    expect(called.ok && called.result.content).toEqual([{ type: "text", text: '{"a":1}' }]);
    await expect.poll(() => versions).toEqual([50]);
    registry.unregister("tool_49");
    expect((await hub.call({ name: "tool_49" })).ok).toBe(false);
    await expect.poll(() => versions).toEqual([50, 49]);
  });
});

describe("[speed-08a] a tool that takes over a name", () => {
  it("is offered in the place of the one that is gone, and one that was changed is offered as it is now", async () => {
    const registry = new ToolRegistry();
    const hub = await hubOf(registry);
    registry.register(tool("twice", { description: "The first." }));
    registry.registerFactory(() => tool("twice", { description: "The second." }));
    const described = (): string[] => hub.tools().map(({ description }) => description);
    expect(described()).toEqual(["The first."]);
    registry.unregister("twice");
    expect(described()).toEqual(["The second."]);

    const changing = { ...tool("changing"), description: "Before." };
    registry.register(changing);
    expect(described()).toEqual(["The second.", "Before."]);
    registry.unregister("changing");
    changing.description = "After.";
    registry.register(changing);
    expect(described()).toEqual(["The second.", "After."]);
  });
});
