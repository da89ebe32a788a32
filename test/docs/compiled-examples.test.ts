/** Every program in the documents compiles under `strict`, as a reader's project would compile it, and the ones that stand alone run. */
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { clientFor } from "../../src/cli/commands/generate.ts";
import type { ToolCapability } from "../../src/model/capability.ts";
import { findProgram } from "../../src/base/programs.ts";
import { bundled } from "../cli/run-cli.ts";
import { isBuilt } from "../support/main-program.ts";
import { runProgram } from "../support/run-program.ts";
import { examplesIn } from "./markdown-examples.ts";

const ROOT = join(import.meta.dirname, "../..");
const TSC = join(ROOT, "node_modules/typescript/bin/tsc");
const EXTENSIONS: Readonly<Record<string, string>> = { js: "mjs", ts: "mts" };

const built = isBuilt();
if (!built) console.warn("Not tested here: examples are compiled against dist/, which npm test builds.");

let dir: string;

/** A project with the packages that the examples import, and each example as a file. */
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), "toolcrib-examples-"));
  mkdirSync(join(dir, "node_modules"));
  symlinkSync(ROOT, join(dir, "node_modules/toolcrib"), "dir");
  for (const name of ["zod", "ai", "@modelcontextprotocol", "@opentelemetry"]) {
    symlinkSync(join(ROOT, "node_modules", name), join(dir, "node_modules", name));
  }
  cpSync(join(import.meta.dirname, "example-context.d.ts"), join(dir, "context.d.ts"));
  writeFileSync(join(dir, "tools.ts"), clientFor([READ_GRAPH]));
  for (const [name, text] of examples()) writeFileSync(join(dir, name), `${text}\nexport {};\n`);
});

afterAll(() => rmSync(dir, { recursive: true, force: true }));

/** By file: the document, the line and the language. */
function examples(): [string, string][] {
  const documents = ["README.md", ...readdirSync(join(ROOT, "docs")).map((name) => `docs/${name}`)];
  return documents
    .filter((path) => path.endsWith(".md"))
    .flatMap((path) =>
      examplesIn(readFileSync(join(ROOT, path), "utf8")).flatMap(({ language, line, text }): [string, string][] => {
        const extension = EXTENSIONS[language];
        return extension === undefined ? [] : [[`${path.replaceAll(/[/.]/g, "_")}_${line}.${extension}`, text]];
      }),
    );
}

// The parts that are looked at.
const READ_GRAPH = {
  kind: "tool",
  name: "memory__read_graph",
  origin: { source: "memory", name: "read_graph" },
  definition: { name: "read_graph", inputSchema: { type: "object" }, outputSchema: { type: "object" } },
} as unknown as ToolCapability;

describe.skipIf(!built)("[joy-16a] the programs of the documents", () => {
  it.each([
    ["nodenext", "nodenext"],
    ["esnext", "bundler"],
  ])(
    "compile with module %s and moduleResolution %s",
    async (module, moduleResolution) => {
      const compilerOptions = {
        ...{ strict: true, noEmit: true, allowJs: true, checkJs: true, allowImportingTsExtensions: true },
        ...{
          target: "es2023",
          lib: ["es2023", "esnext.disposable"],
          module,
          moduleResolution,
          moduleDetection: "force",
        },
        ...{ types: ["node"], typeRoots: [join(ROOT, "node_modules/@types")], skipLibCheck: true },
      };
      expect(examples().length).toBeGreaterThan(25);
      writeFileSync(
        join(dir, "tsconfig.json"),
        JSON.stringify({ compilerOptions, include: ["*.mjs", "*.mts", "*.d.ts", "tools.ts"] }),
      );
      const { code, stdout } = await runProgram(process.execPath, [TSC, "-p", "."], { cwd: dir });
      expect(stdout).toBe("");
      expect(code).toBe(0);
    },
    120_000,
  );

  /** The first example of a document that contains a text. */
  const exampleWith = (document: string, part: string): string => {
    const found = examples().find(([name, text]) => name.startsWith(`${document}_`) && text.includes(part));
    return found?.[0] ?? `no example of ${document} has ${part}`;
  };

  it("that stand alone run to their end", async () => {
    const config = JSON.stringify({ mcpServers: { everything: bundled("everything") } });
    for (const name of ["claude_desktop_config.json", "toolcrib.json"]) writeFileSync(join(dir, name), config);
    const env = { HOME: dir, TOOLCRIB_HOME: join(dir, "home") };
    const readme = exampleWith("README_md", 'createHub("claude_desktop_config.json")');
    const first = await runProgram(process.execPath, [readme], { cwd: dir, env });
    expect(first.stderr).toBe("");
    expect([first.code, first.stdout]).toEqual([0, expect.stringContaining("The sum of 2 and 40 is 42")]);
    const testing = await runProgram(process.execPath, [exampleWith("docs_library_md", "inMemoryHub")], {
      cwd: dir,
      env,
    });
    expect([testing.code, testing.stderr]).toEqual([0, ""]);
  }, 120_000);
});

describe.skipIf(!built)("[joy-16b] other ways to load the package", () => {
  const PROGRAM = `createHub({ mcpServers: {} }).then(async (hub) => { console.log(typeof hub.call); await hub.close(); });`;

  it("CommonJS requires it", async () => {
    writeFileSync(join(dir, "common.cjs"), `const { createHub } = require("toolcrib");\n${PROGRAM}\n`);
    const ran = await runProgram(process.execPath, ["common.cjs"], {
      cwd: dir,
      env: { HOME: dir, TOOLCRIB_HOME: join(dir, "h") },
    });
    expect([ran.code, ran.stdout]).toEqual([0, "function\n"]);
  }, 60_000);

  for (const [name, ...args] of [
    ["bun", "run"],
    ["deno", "run", "-A", "--node-modules-dir=manual"],
  ] as const) {
    const program = findProgram(name, { env: process.env });
    if (program === undefined) console.warn(`Not tested here: ${name} is not installed.`);
    it.skipIf(program === undefined)(
      `${name} imports it`,
      async () => {
        writeFileSync(join(dir, "other.mjs"), `import { createHub } from "toolcrib";\n${PROGRAM}\n`);
        const ran = await runProgram(program ?? name, [...args, "other.mjs"], {
          cwd: dir,
          env: { HOME: dir, TOOLCRIB_HOME: join(dir, "h") },
        });
        expect([ran.code, ran.stdout]).toEqual([0, "function\n"]);
      },
      60_000,
    );
  }
});
