/** Every program in the documents compiles under `strict`, as a reader's project would compile it, and the ones that stand alone run. */
import { spawnSync } from "node:child_process";
import {
  cpSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { clientFor } from "../../src/cli/commands/generate.ts";
import type { ToolCapability } from "../../src/model/capability.ts";
import { bundled } from "../cli/run-cli.ts";
import { fetchPackages } from "../support/fetched-packages.ts";
import { isBuilt } from "../support/main-program.ts";
import { runProgram } from "../support/run-program.ts";
import { isMissing } from "../support/skips.ts";
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
  for (const name of ["zod", "ai", "@ai-sdk", "@modelcontextprotocol", "@opentelemetry"]) {
    symlinkSync(join(ROOT, "node_modules", name), join(dir, "node_modules", name));
  }
  cpSync(join(import.meta.dirname, "example-context.d.ts"), join(dir, "context.d.ts"));
  cpSync(join(import.meta.dirname, "example-scene.mjs"), join(dir, "example-scene.mjs"));
  writeFileSync(join(dir, "tools.ts"), clientFor([READ_GRAPH]));
  layOut();
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

const MODES = [
  ["nodenext", "nodenext"],
  ["esnext", "bundler"],
] as const;

describe.skipIf(!built)("[joy-16a] the programs of the documents", () => {
  it.each(MODES)(
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
        JSON.stringify({
          compilerOptions,
          include: ["*.mjs", "*.mts", "*.d.ts", "tools.ts"],
          exclude: ["example-scene.mjs"],
        }),
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
    const readme = exampleWith("README_md", 'createHub("claude_desktop_config.json")');
    const first = await runProgram(process.execPath, [readme], { cwd: dir, env: environment() });
    expect(first.stderr).toBe("");
    expect([first.code, first.stdout]).toEqual([0, expect.stringContaining("The sum of 2 and 40 is 42")]);
    const testing = await runProgram(process.execPath, [exampleWith("docs_library_md", "inMemoryHub")], {
      cwd: dir,
      env: environment(),
    });
    expect([testing.code, testing.stderr]).toEqual([0, ""]);
  }, 120_000);

  // Those of docs/api.md run against a hub of their own: examples.test.ts.
  const isHere = ([name]: readonly [string, string]): boolean => !name.startsWith("docs_api_md");
  const usesSdk = ([, text]: readonly [string, string]): boolean =>
    /\b(?:openai|anthropic)\.(?:chat|messages)\b/.test(text);

  async function run(chosen: readonly (readonly [string, string])[]): Promise<void> {
    const files = chosen.map(([name]) => name);
    const ran = await runProgram(process.execPath, ["example-scene.mjs", dir, ...files], {
      cwd: dir,
      env: environment(),
    });
    expect(ran.stdout.split("\n").filter((line) => line.startsWith("ran "))).toEqual(
      files.map((name) => `ran ${name}`),
    );
    expect(ran.code, ran.stdout + ran.stderr).toBe(0);
  }

  it("[joy-16c] run against real servers and models that speak the protocols of providers", async () => {
    // Node 22 does not know `await using`.
    const isOld = Number(process.versions.node.split(".")[0]) < 24;
    const chosen = examples().filter(
      (example) => isHere(example) && !usesSdk(example) && !(isOld && example[1].includes("await using")),
    );
    expect(chosen.length).toBeGreaterThan(20);
    await run(chosen);
  }, 240_000);

  it("[joy-16d] of OpenAI's and Anthropic's SDKs compile against their own types, and run", async (context) => {
    const fetched = await fetchPackages({ openai: "7.55.0", "@anthropic-ai/sdk": "1.9.0" });
    if ("missing" in fetched) return context.skip(isMissing("the SDKs of providers", fetched.missing));
    for (const name of ["openai", "@anthropic-ai"])
      symlinkSync(join(fetched.modules, name), join(dir, "node_modules", name));
    const chosen = examples().filter(usesSdk);
    expect(chosen).toHaveLength(4);
    const project = join(dir, "sdks");
    mkdirSync(project);
    for (const [name, text] of chosen) writeFileSync(join(project, `${name}.ts`), withSdkTypes(text));
    for (const [module, moduleResolution] of MODES) {
      const compilerOptions = {
        strict: true,
        noEmit: true,
        target: "es2023",
        lib: ["es2023", "dom", "esnext.disposable"],
      };
      const types = { types: ["node"], typeRoots: [join(ROOT, "node_modules/@types")], skipLibCheck: true };
      const options = { ...compilerOptions, ...types, module, moduleResolution };
      writeFileSync(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions: options, include: ["*.ts"] }));
      const { code, stdout } = await runProgram(process.execPath, [TSC, "-p", "."], { cwd: project });
      expect([code, stdout]).toEqual([0, ""]);
    }
    await run(chosen);
  }, 360_000);
});

/** The example as the body of a function whose parameters are typed by the SDK itself. */
function withSdkTypes(text: string): string {
  const lines = text.split("\n");
  const imports = lines.filter((line) => line.startsWith("import "));
  const body = lines.filter((line) => !line.startsWith("import "));
  const isOpenAi = text.includes("openai.");
  const message = isOpenAi ? "OpenAI.Chat.Completions.ChatCompletionMessageParam" : "Anthropic.MessageParam";
  return [
    ...imports,
    'import type { Hub } from "toolcrib";',
    isOpenAi ? 'import type OpenAI from "openai";' : 'import type Anthropic from "@anthropic-ai/sdk";',
    `export async function run(${isOpenAi ? "openai: OpenAI" : "anthropic: Anthropic"}, messages: ${message}[], hub: Hub,`,
    "  model: string, max_tokens: number, signal: AbortSignal, show: (content: unknown) => void) {",
    ...body,
    "}",
  ].join("\n");
}

/** A folder with configs, skills and programs that the examples name. */
function layOut(): void {
  const everything = bundled("everything");
  const config = { mcpServers: { everything, files: bundled("filesystem", dir), memory: bundled("memory") } };
  for (const name of ["claude_desktop_config.json", "toolcrib.json"])
    writeFileSync(join(dir, name), JSON.stringify(config));
  const ofUsers = { ...everything, isolation: "user" };
  const scene = {
    mcpServers: { ...config.mcpServers, github: everything, example: ofUsers },
    roles: { reviewer: { tools: { allow: ["files__*"] } } },
    skills: { dirs: [join(dir, "skills")] },
  };
  writeFileSync(join(dir, "scene.json"), JSON.stringify(scene));
  mkdirSync(join(dir, "skills/review"), { recursive: true });
  const skill = "---\nname: review\ndescription: Reviews a change.\n---\nRead the change first.\n";
  writeFileSync(join(dir, "skills/review/SKILL.md"), skill);
  writeFileSync(join(dir, "notes.txt"), "A note.\n");
  // The packages are those of this repository: a test asks no registry for them.
  mkdirSync(join(dir, "bin"));
  const npx = `#!/bin/sh\nshift; package=$1; shift; exec node '${ROOT}/node_modules'/$package/dist/index.js "$@"\n`;
  writeFileSync(join(dir, "bin/npx"), npx, { mode: 0o755 });
}

function environment(): NodeJS.ProcessEnv {
  const path = [join(dir, "bin"), dirname(process.execPath), process.env["PATH"]].join(delimiter);
  return { HOME: dir, TOOLCRIB_HOME: join(dir, "home"), PATH: path };
}

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

  it.each([
    ["bun", "1.4.4", "@oven", "bin/bun", ["run"]],
    ["deno", "2.9.6", "@deno", "deno", ["run", "-A", "--node-modules-dir=manual"]],
  ])(
    "%s imports it, and calls a tool",
    async (name, version, scope, binary, args) => {
      const fetched = await fetchPackages({ [name]: version });
      const programs =
        "missing" in fetched
          ? []
          : globSync(`${scope}/*/${binary}`, { cwd: fetched.modules }).map((found) => join(fetched.modules, found));
      const runs = programs.find((program) => spawnSync(program, ["--version"]).status === 0);
      const reason = "missing" in fetched ? fetched.missing : "the registry's program does not run on this machine";
      if (isMissing(name, runs === undefined ? reason : undefined) || runs === undefined) return;
      const program = [
        'import { createHub } from "toolcrib";',
        'const hub = await createHub("toolcrib.json");',
        'const outcome = await hub.call({ name: "everything__get-sum", arguments: { a: 2, b: 40 } });',
        "console.log(outcome.ok ? outcome.result.content[0].text : outcome.error);",
        "await hub.close();",
      ];
      writeFileSync(join(dir, "other.mjs"), program.join("\n"));
      const env = { ...environment(), TOOLCRIB_HOME: join(dir, `home-of-${name}`) };
      const ran = await runProgram(runs, [...args, "other.mjs"], { cwd: dir, env });
      expect([ran.code, ran.stdout], ran.stderr).toEqual([0, "The sum of 2 and 40 is 42.\n"]);
    },
    300_000,
  );
});
