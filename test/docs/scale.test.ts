import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { parseConfigText } from "../../src/config/dialects.ts";
import { ConfigSchema } from "../../src/model/config.ts";
import { examplesIn } from "./markdown-examples.ts";

const root = join(import.meta.dirname, "..", "..");
const text = readFileSync(join(root, "docs", "scale.md"), "utf8");

it("[scale-11a] the config of docs/scale.md is one", () => {
  const configs = examplesIn(text).filter(({ language }) => language === "jsonc");
  expect(configs).toHaveLength(1);
  for (const { text: config } of configs) {
    const { errors, value } = parseConfigText("docs/scale.md", config);
    expect(errors).toEqual([]);
    const { cluster, mcpServers } = ConfigSchema.parse(value);
    expect(cluster).toMatchObject({ node: "tools-1", leaseMs: 4000 });
    expect(mcpServers).toHaveProperty("maths.replicas", 3);
  }
});
