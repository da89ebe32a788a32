/** The configs of docs/recipes.md are accepted and decide as the text says. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { createHub } from "../../src/hub/create/create-hub.ts";
import type { Hub } from "../../src/hub/hub.ts";
import { examplesIn } from "./markdown-examples.ts";

const document = readFileSync(join(import.meta.dirname, "../../docs/recipes.md"), "utf8");

function configUnder(heading: string): string {
  const [, section = ""] = document.split(`\n## ${heading}\n`);
  const example = examplesIn(section).find(({ language }) => language === "jsonc");
  if (example === undefined) throw new Error(`No config under ${heading}`);
  return example.text;
}

/** A hub on the recipe, with in-process tools in the place of its servers. */
async function hubOn(heading: string, tools: readonly string[]): Promise<Hub> {
  const home = mkdtempSync(join(tmpdir(), "toolcrib-recipe-"));
  onTestFinished(() => rmSync(home, { recursive: true, force: true }));
  const file = join(home, "toolcrib.json");
  writeFileSync(file, configUnder(heading));
  const tokens = { ANNA_TOKEN: "a".repeat(20), BEN_TOKEN: "b".repeat(20), OPS_TOKEN: "c".repeat(20) };
  const hub = await createHub(file, { home, connect: "none", env: { ...process.env, ...tokens } });
  onTestFinished(() => hub.close());
  for (const name of tools) {
    hub.registry.register({ name, description: "", parameters: {}, execute: () => Promise.resolve({ content: [] }) });
  }
  return hub;
}

const decided = (hub: Hub, names: readonly string[]): (string | undefined)[] =>
  names.map((name) => hub.explain(name)?.decision.verdict);

it.each(
  [...document.matchAll(/^## (.+)$/gm)].map(([, heading = ""]) => heading).filter((heading) => !/skills/.test(heading)),
)('[joy-17a] the config under "%s" loads without a warning', async (heading) => {
  const hub = await hubOn(heading, []);
  expect(hub.warnings()).toEqual([]);
});

it("[joy-17a] the laptop agent reads, asks before it writes, and does not delete", async () => {
  const names = ["files__read_file", "files__write_file", "files__delete_file", "files__move_file"];
  const hub = await hubOn("An agent on a laptop that may not delete", names);
  expect(decided(hub, names)).toEqual(["allow", "ask", "deny", "deny"]);
});

it("[joy-17a] the job in CI reads and does nothing else", async () => {
  const names = ["files__list_directory", "files__read_file", "files__write_file"];
  const hub = await hubOn("A job in CI", names);
  expect(decided(hub, names)).toEqual(["allow", "allow", "deny"]);
});
