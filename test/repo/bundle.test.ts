import { createRequire } from "node:module";
import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { toAscii, toCommonJs, withoutDescriptions, withSharedSchemas } from "../../scripts/bootstrap/bundle.mjs";

describe("a module of the bundler as CommonJS", () => {
  it("takes what it imports as constants, whatever is imported and by what name", () => {
    const code = `import{readFileSync,existsSync as there}from"node:fs";import os,{EOL}from"node:os";import*as path from"node:path";import"node:net";import{a as z}from"./z.cjs";work()`;
    expect(toCommonJs(code)).toBe(
      `"use strict";const{readFileSync,existsSync:there}=require("node:fs");` +
        `const os=require("node:os");const{EOL}=require("node:os");const path=require("node:path");` +
        `require("node:net");const{a:z}=require("./z.cjs");work();`,
    );
  });

  it("exports at its end, loads files of the bundle by require and packages by a file that imports", () => {
    const code = `const load=()=>[import("./part.cjs"),import(\`./other.cjs\`),import("ws"),import(name)];export{load as l};export{x as y}from"./x.cjs";`;
    expect(toCommonJs(code)).toBe(
      `"use strict";const load=()=>[Promise.resolve().then(()=>require("./part.cjs")),` +
        `Promise.resolve().then(()=>require("./other.cjs")),require("../import.cjs")("ws"),require("../import.cjs")(name)];;exports.l=load;exports.y=require("./x.cjs").x;`,
    );
  });

  it("knows where it is", () => {
    const { url, dirname } = runInNewContext(
      `${toCommonJs("const url=import.meta.url,{dirname}={dirname:import.meta.dirname};")}({url,dirname})`,
      {
        ...{
          require: createRequire(import.meta.url),
          __filename: import.meta.filename,
          __dirname: import.meta.dirname,
        },
      },
    ) as { url: string; dirname: string };
    expect({ url, dirname }).toEqual({ url: import.meta.url, dirname: import.meta.dirname });
    expect(() => toCommonJs("import.meta.resolve(1)")).toThrow(/import\.meta\.resolve/);
  });

  it("is refused where whoever imports a name would not see its later value", () => {
    expect(() => toCommonJs("let n=0;const next=()=>n++;export{n,next};")).toThrow(/A variable is exported: n/);
    expect(toCommonJs("let n=0;const next=()=>n++;export{next};")).toContain("exports.next=next;");
  });

  it("is left alone where something only looks like an import", () => {
    const code = "const text='import a from\"node:fs\"';";
    expect(toCommonJs(code)).toBe(`"use strict";${code};`);
  });
});

describe("the schemas of the config", () => {
  it("are bundled without their descriptions", () => {
    const code = `const S = z.object({ a: z.string().describe("An (odd) text.").optional(), b: Text.describe(\n  "b",\n) }).describe("S");`;
    expect(withoutDescriptions(code)).toBe("const S = z.object({ a: z.string().optional(), b: Text });");
  });

  it("are made once where they are written the same, whatever comes first", () => {
    const code = `const T = z.string();
      const S = { a: z.string().min(1), b: z
        .string().min(1), c: T.optional(), d: [T.optional()] };`;
    const made: string[] = [];
    const schema = (): object => new Proxy({}, { get: (_, key) => () => (made.push(String(key)), schema()) });
    const shapes: unknown = runInNewContext(`${withSharedSchemas(code)};[S.a, S.b, S.c, S.d[0]]`, { z: schema() });
    const [a, b, c, d] = Array.from(shapes as unknown[]);
    expect(made).toEqual(["string", "min", "optional"]);
    expect([b === a, d === c, a === c]).toEqual([true, true, false]);
  });

  it("are left as they are in functions, and where a function is part of them", () => {
    const code = "const S = [z.custom((v) => v), z.custom((v) => v)]; const made = (v) => [Text.max(v), Text.max(v)];";
    expect(withSharedSchemas(code)).toBe(code);
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
