/** What the suite proves of one client: that Toolcrib finds it, imports from it, serves it both ways, and leaves no trace. */
import { type ChildProcess, spawn, type SpawnOptions } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { ModelRequest } from "../../src/testing/model/model-request.ts";
import { startScriptedModel, type ScriptedModel } from "../../src/testing/model/scripted-model.ts";
import { text, type Turn } from "../../src/testing/model/scenario.ts";
import type { JsonObject } from "../../src/model/json.ts";
import { MAIN } from "../support/main-program.ts";
import { everything } from "../support/servers.ts";
import type { Ground, RealClient } from "./clients.ts";

export interface StepResult {
  readonly step: string;
  /** Why it failed; undefined if it did not. */
  readonly problem?: string | undefined;
}

export interface ClientReport {
  readonly client: string;
  readonly version: string;
  readonly steps: readonly StepResult[];
}

/** A client at its place: the program, and what it is started with. */
export interface InstalledClient extends RealClient {
  /** Its whole path. */
  readonly program: string;
  readonly version: string;
}

const CLIENT_MS = 180_000;
const COMMAND_MS = 120_000;
const PROMPT = "Echo the word marmalade.";
const WORD = "marmalade";
const SKILL = "press-flowers";

class Failure extends Error {}

/** Never rejects: a step that fails is in the report, and those that need it are left out. */
export async function tryClient(client: InstalledClient): Promise<ClientReport> {
  const dir = mkdtempSync(join(tmpdir(), "toolcrib-client-"));
  const steps: StepResult[] = [];
  const scene = await Scene.open(client, dir);
  const step = async (name: string, run: () => Promise<void>): Promise<boolean> => {
    try {
      await run();
      steps.push({ step: name });
      return true;
    } catch (error) {
      steps.push({ step: name, problem: error instanceof Error ? error.message : String(error) });
      return false;
    }
  };
  try {
    await step("detect", () => scene.detect());
    if (await step("import", () => scene.import())) {
      if (await step("connect over stdio", () => scene.connect("--stdio"))) {
        // Codex asks servers once and begins without those that are not there, as a hub that is just being started.
        if (!(await step("list and call over stdio", () => scene.converse()))) {
          await step("list and call over stdio, at the second run", () => scene.converse());
        }
        await step("disconnect", () => scene.disconnect());
      }
      if (await step("connect over HTTP", () => scene.connectByUrl())) {
        await step("list and call over HTTP", () => scene.converse());
        await step("disconnect again", () => scene.disconnect());
      }
      await step("skills", () => scene.skill());
      await step("nothing is left", () => scene.isClean());
    }
  } finally {
    await scene.close();
    rmSync(dir, { recursive: true, force: true });
  }
  return { client: client.id, version: client.version, steps };
}

class Scene {
  readonly #client: InstalledClient;
  readonly #dir: string;
  readonly #model: ScriptedModel;
  readonly #ground: Ground;
  readonly #before: ReadonlyMap<string, string>;
  #hub: ChildProcess | undefined;

  static async open(client: InstalledClient, dir: string): Promise<Scene> {
    const model = await startScriptedModel(script);
    const ground = { home: join(dir, "home"), model: model.url };
    for (const folder of ["home", "work"]) mkdirSync(join(dir, folder), { recursive: true });
    const { command = "", args = [] } = everything();
    client.setUp(ground, { command, args });
    return new Scene(client, dir, model, ground);
  }

  private constructor(client: InstalledClient, dir: string, model: ScriptedModel, ground: Ground) {
    this.#client = client;
    this.#dir = dir;
    this.#model = model;
    this.#ground = ground;
    this.#before = filesIn(ground.home);
  }

  async close(): Promise<void> {
    this.#hub?.kill("SIGTERM");
    if (this.#hub !== undefined && this.#hub.exitCode === null) await once(this.#hub, "exit");
    await this.#toolcrib(["hub", "stop"]).catch(() => {});
    await this.#model.close();
  }

  async detect(): Promise<void> {
    // What docs/cli.md says that it prints.
    const listed = JSON.parse(await this.#toolcrib(["clients", "--json"])) as readonly ListedClient[];
    const found = listed.find(({ id }) => id === this.#client.id);
    expect(found?.installed === true, `clients does not find it: ${JSON.stringify(found)}`);
    const servers = JSON.stringify(found);
    expect(servers.includes('"own"'), `clients does not show its server: ${servers}`);
  }

  async import(): Promise<void> {
    await this.#toolcrib(["import", this.#client.id]);
    const listed = await this.#toolcrib(["list", "--json"]);
    expect(listed.includes("own__echo"), `the imported server does not work: ${listed.slice(0, 500)}`);
  }

  async connect(...options: string[]): Promise<void> {
    await this.#toolcrib(["connect", this.#client.id, ...options]);
    const text = [...filesIn(this.#ground.home).values()].join("\n");
    expect(text.includes("toolcrib"), "nothing was written");
  }

  async connectByUrl(): Promise<void> {
    const hub = spawn(process.execPath, [MAIN, "serve", "--port", "0", "--json"], this.#options());
    this.#hub = hub;
    let said = "";
    hub.stdout?.setEncoding("utf8").on("data", (chunk: string) => (said += chunk));
    const deadline = Date.now() + COMMAND_MS;
    while (!/^\}/m.test(said)) {
      expect(hub.exitCode === null && Date.now() < deadline, `serve did not start: ${said}`);
      await delay(50);
    }
    const { mcp } = JSON.parse(said) as { mcp: string };
    await this.connect("--url", mcp);
  }

  /** The client asks the model, the model calls `echo`, and the model is given its result. */
  async converse(): Promise<void> {
    const from = this.#model.requests.length;
    const said = await this.#run(PROMPT);
    const requests = this.#model.requests.slice(from);
    const problems = this.#model.problems.join("; ");
    const offered = requests.flatMap(({ tools }) => tools.map(({ name }) => name));
    const echo = requests.map(echoIn).find((name) => name !== undefined);
    expect(
      echo !== undefined,
      `the model was offered no echo: ${[...new Set(offered)].join(" ")}; ${problems}; ${said}`,
    );
    const long = [...new Set(offered)].filter((name) => name.length > 64);
    expect(long.length === 0, `names of more than 64 characters: ${long.join(" ")}`);
    const result = requests.flatMap(({ messages }) => messages.flatMap(({ results }) => results)).find(isEchoed);
    expect(result !== undefined, `the model was given no result: ${problems}; ${said.slice(-2000)}`);
    expect(said.includes("The word was"), `the answer was not printed: ${said.slice(-2000)}`);
  }

  async disconnect(): Promise<void> {
    await this.#toolcrib(["disconnect", this.#client.id]);
    const from = this.#model.requests.length;
    await this.#run(PROMPT);
    const requests = this.#model.requests.slice(from);
    const offered = requests.flatMap(({ tools }) => tools.map(({ name }) => name));
    const ours = [
      ...offered.filter((name) => name.includes("toolcrib")),
      ...requests.flatMap((each) => echoIn(each) ?? []),
    ];
    expect(ours.length === 0, `tools are still offered: ${ours.slice(0, 5).join(" ")}`);
  }

  async skill(): Promise<void> {
    const folder = join(this.#dir, SKILL);
    mkdirSync(folder);
    const head = `---\nname: ${SKILL}\ndescription: How to press flowers between two books.\n---\n`;
    writeFileSync(join(folder, "SKILL.md"), `${head}\nPut the flower between two heavy books for a week.\n`);
    await this.#toolcrib(["skill", "install", folder, "--client", this.#client.id, "--yes"]);
    if (this.#client.showsSkills) {
      const from = this.#model.requests.length;
      await this.#run(PROMPT);
      const asked = JSON.stringify(this.#model.requests.slice(from).map(({ body }) => body));
      expect(asked.includes(SKILL), "the model does not hear of the skill");
    }
    await this.#toolcrib(["skill", "remove", SKILL, "--yes"]);
  }

  /** The files that it had are as they were, but for what the client itself keeps in them. */
  async isClean(): Promise<void> {
    for (const [file] of this.#before) {
      const path = join(this.#ground.home, file);
      const now = existsSync(path) ? readFileSync(path, "utf8") : "";
      expect(!/"toolcrib"|mcp_servers\.toolcrib/.test(now), `${file} still has an entry of Toolcrib`);
      expect(now.includes("own"), `${file} has lost its own server`);
    }
    const backups = [...filesIn(this.#ground.home).keys()].filter((file) => file.endsWith(".toolcrib-backup"));
    expect(backups.length === 0, `backups are left: ${backups.join(" ")}`);
  }

  #options(): SpawnOptions {
    const { home } = this.#ground;
    const env = {
      PATH: process.env["PATH"] ?? "",
      HOME: home,
      TOOLCRIB_HOME: join(this.#dir, "toolcrib"),
      TERM: "dumb",
      NO_COLOR: "1",
      ...this.#client.env(this.#ground),
    };
    return { cwd: join(this.#dir, "work"), env, stdio: ["ignore", "pipe", "pipe"] };
  }

  async #toolcrib(args: readonly string[]): Promise<string> {
    return runProgram(process.execPath, [MAIN, ...args], this.#options(), COMMAND_MS);
  }

  async #run(prompt: string): Promise<string> {
    return runProgram(this.#client.program, this.#client.args(prompt), this.#options(), CLIENT_MS);
  }
}

interface ListedClient {
  readonly id: string;
  readonly installed: boolean;
}

function isEcho(name: string): boolean {
  return /toolcrib.*echo$/.test(name);
}

function isEchoed(result: { readonly text: string }): boolean {
  return result.text.includes(`Echo: ${WORD}`);
}

/** Also where the client only names its tools and has them looked up. */
function echoIn(request: ModelRequest): string | undefined {
  const offered = request.tools.find(({ name }) => isEcho(name))?.name;
  return offered ?? /(?<![\w-])[\w-]*toolcrib[\w-]*echo\b/.exec(saidIn(request))?.[0];
}

/** The words of a request, with escapes of line breaks as spaces. */
function saidIn({ body }: ModelRequest): string {
  return JSON.stringify(body["messages"] ?? body["input"] ?? body["contents"] ?? "").replaceAll(/\\+n/g, " ");
}

/** Claude Code names servers that are not there yet, and has a tool that waits for them. */
function isAwaited(request: ModelRequest): boolean {
  return /still connecting.{0,400}\btoolcrib\b(?!-)/.test(saidIn(request));
}

/** Tools that call another by its name, and what they are given. */
const RELAYS: Readonly<Record<string, (name: string, args: object) => JsonObject>> = {
  tool_call: (name, args) => ({ name, arguments: args }),
  use_tool: (name, args) => ({ tool_name: name, tool_input: args }),
};

/** A client may have tools looked up, and wait for a server, before it lets the model call. */
const MAX_TRIES = 3;

/** Calls `echo` of Toolcrib once where it is offered, and then says so; anything else that a client asks is answered shortly. */
export function script(request: ModelRequest): Turn {
  const { tools, messages } = request;
  const results = messages.flatMap((message) => message.results);
  if (results.some(isEchoed)) return text(`The word was ${WORD}.`);
  const echo = echoIn(request);
  const search = tools.find(({ name }) => /^(?:tool_?search|search_tool)$/i.test(name))?.name;
  const lookUp = (query: string): Turn => ({ calls: [{ name: search ?? "", arguments: { query } }] });
  // What failed is told by the steps.
  if (results.length > MAX_TRIES) return text("Nothing to do.");
  if (echo === undefined) {
    // Grok names no tools at all.
    const mayBeThere = search === "search_tool" || (search !== undefined && isAwaited(request));
    return mayBeThere ? lookUp(search === "search_tool" ? "toolcrib echo" : "+toolcrib echo") : text("Nothing to do.");
  }
  const args = { message: WORD };
  if (tools.some(({ name }) => name === echo)) return { calls: [{ name: echo, arguments: args }] };
  const isLookedUp = messages.some(({ calls }) => JSON.stringify(calls).includes("select:"));
  const relay = tools.find(({ name }) => Object.hasOwn(RELAYS, name))?.name;
  if (search !== undefined && relay === undefined && !isLookedUp) return lookUp(`select:${echo}`);
  const call = { name: echo, arguments: args };
  return { calls: [relay === undefined ? call : { name: relay, arguments: RELAYS[relay]?.(echo, args) ?? {} }] };
}

/** Relative paths and contents; folders that clients fill with caches are left out. */
function filesIn(home: string): Map<string, string> {
  const files = new Map<string, string>();
  for (const entry of readdirSync(home, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isFile() && !path.includes("node_modules")) files.set(relative(home, path), readFileSync(path, "utf8"));
  }
  return files;
}

async function runProgram(
  program: string,
  args: readonly string[],
  options: SpawnOptions,
  limitMs: number,
): Promise<string> {
  const child = spawn(program, args, { ...options, detached: true });
  let out = "";
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding("utf8").on("data", (chunk: string) => (out += chunk));
  const ended = once(child, "close");
  const timer = setTimeout(() => killGroup(child), limitMs);
  try {
    const [code] = (await ended) as [number | null];
    expect(code === 0, `${program} ${args.join(" ")} ended with ${code ?? "a signal"}: ${out.slice(-2000)}`);
    return out;
  } finally {
    clearTimeout(timer);
  }
}

function killGroup({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, "SIGKILL");
  } catch {
    // It has gone in the meantime.
  }
}

function expect(isSo: boolean, problem: string): asserts isSo {
  if (!isSo) throw new Failure(problem);
}
