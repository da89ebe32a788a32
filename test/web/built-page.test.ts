/** The page as it is shipped. `node scripts/dev.mjs test` builds it first. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";

const page = join(import.meta.dirname, "..", "..", "dist", "web");
const assets = join(page, "assets");
const html = readFileSync(join(page, "index.html"), "utf8");
const scripts = new Map(
  readdirSync(assets)
    .filter((name) => name.endsWith(".js"))
    .map((name) => [name, readFileSync(join(assets, name), "utf8")]),
);

/** A script and all that it needs before it can run. */
function withImports(name: string, found = new Set<string>()): Set<string> {
  if (found.has(name)) return found;
  found.add(name);
  const code = scripts.get(name) ?? "";
  for (const [, imported] of code.matchAll(/(?:from|import)\s*"\.\/([\w.-]+\.js)"/g))
    if (imported !== undefined) withImports(imported, found);
  return found;
}

/** A script of messages loads those of one language. */
function largestLanguage(name: string): number {
  const parts = (scripts.get(name) ?? "").matchAll(/import\(`\.\/(messages_[\w.-]+\.js)`\)/g);
  return Math.max(0, ...Array.from(parts, ([, part = ""]) => gzipSync(scripts.get(part) ?? "").length));
}

const entry = /<script[^>]*src="\.\/assets\/([\w.-]+\.js)"/.exec(html)?.[1] ?? "";
const VIEWS = [
  "overview",
  "servers",
  "tools",
  "approvals",
  "skills",
  "sessions",
  "traffic",
  "audit",
  "settings",
  "help",
  "palette",
];

describe("the built page", () => {
  it.each(VIEWS)("[oper-08a] loads under 200 kB of compressed script for %s", (view) => {
    // Its messages may be a script of the same name.
    const chunks = [...scripts.keys()].filter((name) => name.startsWith(`${view}-`));
    expect([...scripts.keys()].some((name) => largestLanguage(name) > 0)).toBe(true);
    expect(entry).not.toBe("");
    expect(chunks).not.toEqual([]);
    const needed = chunks.reduce((found, chunk) => withImports(chunk, found), withImports(entry));
    const sizeOf = (name: string): number => gzipSync(scripts.get(name) ?? "").length;
    const size = [...needed].reduce((sum, name) => sum + sizeOf(name) + largestLanguage(name), 0);
    expect(size).toBeGreaterThan(50_000);
    expect(size).toBeLessThan(200_000);
  });

  it("[oper-07c] has no script or style in the page itself, and names no other host", () => {
    expect(html).not.toMatch(/<script(?![^>]*\bsrc=)/);
    expect(html).not.toMatch(/<style|\son\w+=|\sstyle=/);
    // From its own folder, which may be below the path of a proxy.
    expect(html).not.toMatch(/(?:src|href)="(?!\.\/)/);
  });

  it("[oper-06a] leaves the schemas of the contract out", () => {
    for (const [name, code] of scripts) expect(code.includes("ZodError"), name).toBe(false);
  });
});
