import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { toAscii, withoutBuiltinNamespaces } from "../../scripts/bootstrap/bundle.mjs";

describe("imports of Node's own modules", () => {
  it("become plain look-ups, whatever is imported and by what name", () => {
    const code = `import{readFileSync,existsSync as there}from"node:fs";import os from"node:os";import*as path from"node:path";import"node:net";import{z}from"./z.js";work()`;
    expect(withoutBuiltinNamespaces(code)).toBe(
      `const{readFileSync,existsSync:there}=globalThis.process.getBuiltinModule("node:fs");` +
        `const os=globalThis.process.getBuiltinModule("node:os");` +
        `const path=globalThis.process.getBuiltinModule("node:path");` +
        `import{z}from"./z.js";work()`,
    );
  });

  it("take the default together with names", () => {
    const code = `import process$1,{argv}from"node:process";`;
    const lookup = `globalThis.process.getBuiltinModule("node:process")`;
    expect(withoutBuiltinNamespaces(code)).toBe(`const process$1=${lookup};const{argv}=${lookup};`);
  });

  it("are left alone where they only look like imports", () => {
    const code = "const text='import a from\"node:fs\"';";
    expect(withoutBuiltinNamespaces(code)).toBe(code);
  });
});

describe("characters outside ASCII", () => {
  it("are escaped, and mean the same in strings, templates and patterns", () => {
    const code = String.raw`[ "é…😀", ${"`→`"}, /[а-я]+/u.source, /^😀$/u.test("😀"), "a\\→" ]`;
    const escaped = toAscii(code);
    expect(escaped).toMatch(/^[\0-\x7f]*$/);
    const [first, second, pattern, matches, afterBackslash] = Array.from<unknown>(runInNewContext(escaped));
    expect([first, second, matches, afterBackslash]).toEqual(["é…😀", "→", true, "a\\→"]);
    expect(new RegExp(`^${String(pattern)}$`, "u").test("привет")).toBe(true);
  });

  it("are refused behind a backslash, which would eat the escape", () => {
    expect(() => toAscii(String.raw`/\→/`)).toThrow(/backslash/);
  });
});
