import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, it } from "vitest";
import { COMMANDS } from "../../src/cli/command-table.ts";
import { COMMAND_GROUPS } from "../../src/cli/command.ts";
import { VERSION } from "../../src/model/version.ts";
import { runProgram } from "../support/run-program.ts";
import { BIN, workspace } from "./run-cli.ts";

interface ErrorOutput {
  error: { code: string; message: string; hint?: string };
}

/** Prints the url of every module that was loaded, at the end, on stderr. */
const TRACER = `
import { registerHooks } from "node:module";
const urls = [];
registerHooks({ load(url, context, next) { urls.push(url); return next(url, context); } });
process.on("exit", () => process.stderr.write(urls.join("\\n")));
`;

const OF_AGENTS = /node_modules\/(?:ai|@ai-sdk|@agentclientprotocol)\//;

describe("help", () => {
  it("[spine-20] --help loads neither hub, zod, ajv nor an MCP SDK", async () => {
    const place = workspace();
    const tracer = place.write("tracer.mjs", TRACER);
    const { code, stdout, stderr } = await place.run(["--help"], { nodeArgs: ["--import", tracer] });
    expect(code).toBe(0);
    for (const { name } of COMMANDS) expect(stdout).toContain(`  ${name} `);
    const loaded = stderr.split("\n").filter((url) => url.startsWith("file:"));
    expect(loaded.some((url) => url.endsWith("/src/cli/command-table.ts"))).toBe(true);
    const heavy =
      /\/src\/(?!cli\/|base\/visible-text\.ts|model\/(?:errors|json|version)\.ts|secrets\/(?!secrets\.ts|providers\/|oauth\/))|\/src\/cli\/(?:commands|export|run|serve|skill)\/|node_modules\/(?!commander\/)/;
    expect(loaded.filter((url) => heavy.test(url))).toEqual([]);
  });

  it("[spine-20] the same trace does see the hub when a command runs", async () => {
    const place = workspace();
    const tracer = place.write("tracer.mjs", TRACER);
    const { stderr } = await place.run(["list"], { nodeArgs: ["--import", tracer] });
    expect(stderr).toMatch(/\/src\/hub\/create\/create-hub\.ts/);
    expect(stderr).toMatch(/node_modules\/zod/);
    expect(stderr).not.toMatch(OF_AGENTS);
  });

  it("[agent-08b] neither the list nor the library loads what only agents need", async () => {
    const place = workspace();
    const tracer = place.write("tracer.mjs", TRACER);
    const entries = ["index.ts", "agent/index.ts", "agent/adapters/index.ts"].flatMap((file) => [
      "--import",
      pathToFileURL(join(import.meta.dirname, "../../src", file)).href,
    ]);
    const { code, stderr } = await runProgram(process.execPath, ["--import", tracer, ...entries, "-e", ""]);
    expect(code).toBe(0);
    expect(stderr).toMatch(/\/src\/agent\/adapters\/ai-sdk\.ts/);
    expect(stderr).not.toMatch(OF_AGENTS);
  });

  it("has a page for every command, with its options and the global ones", async () => {
    const place = workspace();
    for (const { name, options } of COMMANDS) {
      const { code, stdout } = await place.runHere([name, "--help"]);
      expect(code).toBe(0);
      for (const { flags } of options) expect(stdout).toContain(flags);
      for (const global of ["--json", "--config <file>", "--quiet"]) expect(stdout).toContain(global);
    }
  });

  it("[joy-14a] groups the commands, and shows an example for each that takes an argument", async () => {
    const { stdout } = await workspace().runHere(["--help"]);
    for (const group of COMMAND_GROUPS) expect(stdout).toContain(`\n${group}:\n`);
    const without = COMMANDS.filter((each) => each.arguments.length > 0 && each.examples === undefined);
    expect(without.map(({ name }) => name)).toEqual([]);
  });

  it("[joy-14a] is also what `toolcrib help` prints", async () => {
    const place = workspace();
    for (const named of [[], ["call"], ["skill"]]) {
      const { code, stdout } = await place.runHere(["help", ...named]);
      expect([code, stdout]).toEqual([0, (await place.runHere([...named, "--help"])).stdout]);
    }
  });

  it("prints the version", async () => {
    expect(await workspace().run(["--version"])).toMatchObject({ code: 0, stdout: `${VERSION}\n`, stderr: "" });
  });

  it("each command of the table has a handler of its own", async () => {
    const handlers = await Promise.all(COMMANDS.map(({ load }) => load()));
    for (const handler of handlers) expect(handler).toBeTypeOf("function");
    expect(new Set(handlers).size).toBe(COMMANDS.length);
  });
});

describe("[spine-19e] usage errors exit 2", () => {
  const cases: [title: string, args: string[], message: RegExp, hint: RegExp][] = [
    ["an unknown command", ["lst"], /Unknown command 'lst'/, /Did you mean list\?/],
    ["an unknown option", ["list", "--jsn"], /Unknown option '--jsn'/, /Did you mean --json\?/],
    [
      "a missing argument",
      ["call"],
      /Missing required argument 'tool'/,
      /Usage: toolcrib call \[options\] <tool> \[arguments\.\.\.\], for example: toolcrib call /,
    ],
    ["too many arguments", ["schema", "x"], /Too many arguments/, /--help/],
    ["a timeout that is no number", ["list", "--timeout", "soon"], /positive whole number/, /--help/],
    ["no key=value", ["call", "t", "novalue"], /"novalue" is not key=value/, /key:=JSON/],
    ["--args together with key=value", ["call", "t", "a=1", "--args", "{}"], /cannot be mixed/, /JSON object/],
    ["a target that is none", ["export", "vagrant"], /"vagrant" is not an export target/, /compose or kubernetes/],
  ];
  it.each(cases)("%s", async (_title, args, message, hint) => {
    const place = workspace();
    const asText = await place.runHere(args);
    expect(asText.code).toBe(2);
    expect(asText.stdout).toBe("");
    expect(asText.stderr).toMatch(message);
    expect(asText.stderr).toMatch(hint);
    expect(asText.stderr).not.toMatch(/\n\s+at /);

    const asJson = await place.runHere([...args, "--json"]);
    expect(asJson.code).toBe(2);
    expect(asJson.stderr).toBe("");
    const { error } = asJson.json<ErrorOutput>();
    expect(error.code).toBe("invalid_arguments");
    expect(error.message).toMatch(message);
  });

  it("as a process too, with only the error object on stdout", async () => {
    const { code, stdout, stderr } = await workspace().run(["lst", "--json"]);
    expect([code, stderr]).toEqual([2, ""]);
    expect(JSON.parse(stdout)).toMatchObject({ error: { code: "invalid_arguments" } });
  });

  it("no command at all shows the help on stderr", async () => {
    const { code, stdout, stderr } = await workspace().run([]);
    expect(code).toBe(2);
    expect(stdout).toBe("");
    expect(stderr).toContain("Usage: toolcrib <command>");
  });
});

describe("bin", () => {
  it("runs the command line and passes the exit code on", async () => {
    const place = workspace();
    expect(await place.run(["--version"], { main: BIN })).toMatchObject({ code: 0, stdout: `${VERSION}\n` });
    expect((await place.run(["nonsense"], { main: BIN })).code).toBe(2);
  });
});
