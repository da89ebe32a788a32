/** The configs of docs/isolation.md are accepted, and it names every key of a cage. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "jsonc-parser";
import { expect, it } from "vitest";
import { ConfigSchema } from "../../src/model/config.ts";
import { SANDBOX_KINDS, SandboxSchema } from "../../src/model/server-spec.ts";
import { readSandbox } from "../../src/upstream/sandbox/sandbox-settings.ts";
import { examplesIn } from "./markdown-examples.ts";

const document = readFileSync(join(import.meta.dirname, "../../docs/isolation.md"), "utf8");
const examples = examplesIn(document).filter(({ language }) => language === "jsonc" || language === "json");

it("[cage-01a] the examples of docs/isolation.md are valid, cages and all", () => {
  expect(examples.length).toBeGreaterThan(2);
  for (const { text, line } of examples) {
    const config = ConfigSchema.safeParse(parse(text, [], { allowTrailingComma: true }));
    expect(config.error?.issues, `line ${line}`).toBeUndefined();
    for (const server of Object.values(config.data?.mcpServers ?? {})) {
      const sandbox = SandboxSchema.safeParse(server.sandbox ?? "none");
      expect(sandbox.success, `line ${line}`).toBe(true);
      if (sandbox.success) expect(SANDBOX_KINDS).toContain(readSandbox(sandbox.data, "/srv", {}).kind);
    }
  }
});

it("[cage-01a] docs/isolation.md tells of every kind and every key", () => {
  const keys = SandboxSchema.options.flatMap((option) => ("shape" in option ? Object.keys(option.shape) : []));
  expect(keys.length).toBeGreaterThan(8);
  for (const name of [...keys, ...SANDBOX_KINDS]) expect(document).toContain(`\`${name}\``);
});
