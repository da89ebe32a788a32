import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { parse } from "jsonc-parser";
import { createHub } from "../../src/hub/create/create-hub.ts";
import type { Hub } from "../../src/hub/hub.ts";
import { parseJsonObject } from "../../src/model/json.ts";
import { ToolRegistry } from "../../src/tools/tool-registry.ts";

const document = readFileSync(join(import.meta.dirname, "../../docs/policy.md"), "utf8");
const tasks = document.slice(document.indexOf("## Tasks"), document.indexOf("\n## Rules\n")).split("\n### ").slice(1);
const READS = ["files__read_file", "pay__balance"];

let hub: Hub | undefined;
afterEach(async () => hub?.close());

describe("[shape-08a] every task of docs/policy.md", () => {
  it("is there", () => expect(tasks.length).toBeGreaterThanOrEqual(6));

  it.each(tasks.map((task) => [task.split("\n", 1)[0] ?? "", task]))(
    "%s: decides as the table says",
    async (_, task) => {
      const config: object = parse(/```jsonc\n([\s\S]*?)```/.exec(task)?.[1] ?? "");
      const rows = [...task.matchAll(/^\| `(\w+)` \| `(\{.*\})` \| (.*?) ?\| (allow|ask|deny) \|$/gm)];
      expect(rows.length).toBeGreaterThanOrEqual(4);
      const registry = new ToolRegistry();
      for (const name of new Set(rows.map(([, tool = ""]) => tool))) {
        const properties = { branch: {}, path: { type: "string" }, to: {}, amount: {}, account: {} };
        const annotations = { readOnlyHint: READS.includes(name) };
        const parameters = { type: "object", properties };
        registry.register({
          name,
          description: "A tool.",
          parameters,
          annotations,
          execute: async () => ({ content: [] }),
        });
      }
      hub = await createHub(config, { registry, env: { ...process.env, HOME: "/home/ann" } });
      for (const [row = "", name = "", json = "", circumstances = "", expected] of rows) {
        const [, hour, minute] = /at (\d\d):(\d\d)/.exec(circumstances) ?? [];
        const explanation = await hub.explain({
          name,
          arguments: parseJsonObject(json),
          tainted: circumstances.includes("tainted"),
          client: /client ([\w-]+)/.exec(circumstances)?.[1] ?? "a client",
          now: hour === undefined ? undefined : new Date(2026, 0, 5, Number(hour), Number(minute)).getTime(),
          earlierCalls: Number(/(\d+) earlier/.exec(circumstances)?.[1] ?? 0),
        });
        expect([row, explanation?.decision.verdict]).toEqual([row, expected]);
      }
    },
  );
});
