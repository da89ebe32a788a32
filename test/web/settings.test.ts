import { describe, expect, it } from "vitest";
import {
  type ConfigValue,
  isLarge,
  originOptions,
  sectionsOf,
  valueText,
} from "../../web/src/views/settings/config-sections.ts";

const VALUES: readonly ConfigValue[] = [
  { key: "mcpServers.files", value: { command: "npx" }, origin: "store" },
  { key: "import", value: [], origin: "default" },
  { key: "limits.concurrency", value: 16, origin: "environment", where: "TOOLCRIB_CONCURRENCY" },
  { key: "limits.servers", value: 50, origin: "default" },
  { key: "tools.deny", value: ["memory__delete_*"], origin: "file", where: "/etc/toolcrib.json:14" },
];
const shown = (filter: { q?: string; origin?: string }): string[] =>
  sectionsOf(VALUES, filter).map(({ name, values }) => `${name}: ${values.map(({ key }) => key).join(" ")}`);

describe("the values of the config", () => {
  it("[oper-09h] stand in sections, keys without a dot together", () => {
    expect(shown({})).toEqual([
      "mcpServers: mcpServers.files",
      "general: import",
      "limits: limits.concurrency limits.servers",
      "tools: tools.deny",
    ]);
  });

  it("[oper-09h] are found by key, value, place and origin", () => {
    expect(shown({ q: "CONCURRENCY" })).toEqual(["limits: limits.concurrency"]);
    expect(shown({ q: "delete_" })).toEqual(["tools: tools.deny"]);
    expect(shown({ q: "toolcrib.json:14" })).toEqual(["tools: tools.deny"]);
    expect(shown({ origin: "default" })).toEqual(["general: import", "limits: limits.servers"]);
    expect(shown({ origin: "default", q: "npx" })).toEqual([]);
  });

  it("[oper-09h] offer the origins that there are, and the one of the address", () => {
    expect(originOptions(VALUES, "code").map(([, word]) => word)).toEqual([
      "Default (2)",
      "File (1)",
      "Environment (1)",
      "Store (1)",
      "Code (0)",
    ]);
  });

  it("are shown on a line, or folded if they are long", () => {
    expect([valueText("a"), valueText(3), valueText(["x"]), valueText(undefined)]).toEqual(["a", "3", '["x"]', ""]);
    expect(isLarge({ a: "x".repeat(80) })).toBe(true);
    expect(isLarge(["short"])).toBe(false);
    expect(isLarge("x".repeat(80))).toBe(false);
  });
});
