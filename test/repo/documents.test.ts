import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { LAYERS } from "./layers.ts";
import { readSources } from "../support/read-sources.ts";

const root = join(import.meta.dirname, "..", "..");
const read = (path: string): string => readFileSync(join(root, path), "utf8");

it("[house-12a] ARCHITECTURE.md is one page, and lists every folder of the layers", () => {
  expect(statSync(join(root, "ARCHITECTURE.md")).size).toBeLessThanOrEqual(15 * 1024);
  const text = read("ARCHITECTURE.md");
  const folders = LAYERS.flat().filter((folder) => folder !== "" && !folder.startsWith("doors/"));
  expect(folders.filter((folder) => !text.includes(`\`src/${folder}\``))).toEqual([]);
});

it("[house-12b] files that a document names exist", () => {
  const documents = ["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md"].map((path) => ({ path, text: read(path) }));
  const gone = [...documents, ...readSources(join(root, "docs"), [".md"])].flatMap(({ path, text }) =>
    [...text.matchAll(/`((?:src|test|scripts|bench|docs|web|demo)\/[\w./-]+)`/g)]
      .map(([, name = ""]) => name)
      .filter((name) => !existsSync(join(root, name)))
      .map((name) => `${path}: ${name}`),
  );
  expect(gone).toEqual([]);
});

it("[house-12c] commands that CONTRIBUTING.md names exist", () => {
  const { scripts } = JSON.parse(read("package.json")) as { scripts: Record<string, string> };
  const named = [...read("CONTRIBUTING.md").matchAll(/`npm (?:run )?(?:--silent )?([a-z:]+)/g)].map(
    ([, name = ""]) => name,
  );
  const known = new Set([...Object.keys(scripts), "install", "ci", "pack", "start", "test"]);
  expect(named.length).toBeGreaterThan(3);
  expect(named.filter((name) => !known.has(name))).toEqual([]);
});

it("[joy-17b] README.md is short, and docs/README.md names every page", () => {
  expect(statSync(join(root, "README.md")).size).toBeLessThanOrEqual(8 * 1000);
  const index = read("docs/README.md");
  const pages = readdirSync(join(root, "docs")).filter((name) => name.endsWith(".md") && name !== "README.md");
  expect(pages.filter((name) => !index.includes(`](${name}`))).toEqual([]);
});
