import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterEach, describe, expect, it } from "vitest";
import { eventually } from "../support/eventually.ts";
import { MAIN, PATIENT } from "../support/main-program.ts";
import { isAlive } from "../support/processes.ts";

/** Prints in every way that a library could, at the start and for as long as it lives. */
const NOISY = `
import { createRequire } from "node:module";
import fs, { writeSync, writeFileSync } from "node:fs";
import { appendFile } from "node:fs/promises";
const noise = (way) => "noise by " + way + "\\n";
export default () => {
  const print = () => {
    console.log("noise by console");
    process.stdout.write(noise("stream"));
    writeSync(1, noise("named"));
    fs.write(1, noise("default"), () => {});
    writeFileSync(1, noise("writeFileSync"));
    fs.appendFileSync(1, noise("appendFileSync"));
    fs.writeFile(1, noise("writeFile"), () => {});
    fs.promises.writeFile("/dev/stdout", noise("promise"));
    appendFile("/proc/self/fd/1", noise("named promise"));
    createRequire(import.meta.url)("node:fs").writeSync(1, noise("require"));
  };
  print();
  setInterval(print, 20).unref();
};`;

/** A server that writes down its process and does not end when it is asked to. */
const STUBBORN = `
import { appendFileSync } from "node:fs";
import { createInterface } from "node:readline";
appendFileSync(process.argv[2], process.pid + "\\n");
process.on("SIGTERM", () => {});
setInterval(() => {}, 1000);
const results = {
  initialize: (params) => ({ protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "s", version: "1" } }),
  "tools/list": () => ({ tools: [{ name: "wait", inputSchema: { type: "object" } }] }),
};
createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  const result = results[method]?.(params);
  if (result) process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, result }) + "\\n");
});
`;

const places: string[] = [];
const running: ChildProcess[] = [];

afterEach(() => {
  for (const child of running.splice(0)) if (child.exitCode === null) child.kill("SIGKILL");
  for (const place of places.splice(0)) rmSync(place, { recursive: true, force: true });
});

function folder(files: Readonly<Record<string, string>>): string {
  const dir = mkdtempSync(join(tmpdir(), "toolcrib-acp-"));
  places.push(dir);
  for (const [name, content] of Object.entries(files)) writeFileSync(join(dir, name), content);
  return dir;
}

class Program {
  readonly child: ChildProcess;
  readonly stderr: Promise<string>;
  stdout = "";
  #next = 0;

  constructor(dir: string, args: readonly string[] = []) {
    this.child = spawn(process.execPath, [MAIN, "acp", ...args], {
      cwd: dir,
      env: {
        PATH: process.env["PATH"],
        HOME: dir,
        ...PATIENT,
        TOOLCRIB_HOME: join(dir, "home"),
        TOOLCRIB_CONFIG: join(dir, "toolcrib.json"),
      },
      stdio: "pipe",
    });
    running.push(this.child);
    this.child.stdout?.on("data", (chunk: Buffer) => (this.stdout += chunk.toString("utf8")));
    this.stderr = this.child.stderr === null ? Promise.resolve("") : text(this.child.stderr);
  }

  /** Every line of stdout; throws for what is no JSON. */
  get messages(): Record<string, unknown>[] {
    const whole = this.stdout.slice(0, this.stdout.lastIndexOf("\n") + 1);
    return whole
      .split("\n")
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  }

  async request(method: string, params: object): Promise<Record<string, unknown>> {
    const id = this.#next++;
    this.child.stdin?.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
    return eventually(async () => {
      const answer = this.messages.find((message) => message["id"] === id && !("method" in message));
      if (answer === undefined && this.child.exitCode !== null)
        throw new Error(`It ended: ${this.stdout}${await this.stderr}`);
      return answer;
    }, `an answer to ${method}`);
  }

  initialize(): Promise<Record<string, unknown>> {
    return this.request("initialize", { protocolVersion: 1, clientCapabilities: {} });
  }

  async ended(): Promise<number | null> {
    if (this.child.exitCode === null && this.child.signalCode === null) await once(this.child, "close");
    return this.child.exitCode;
  }
}

describe("[acp-13a] toolcrib acp", () => {
  it("keeps stdout to the protocol whatever is printed, and leaves nothing when stdin ends or a signal comes", async () => {
    const dir = folder({
      "noisy.mjs": NOISY,
      "stubborn.mjs": STUBBORN,
      "toolcrib.json": JSON.stringify({ mcpServers: {}, plugins: ["./noisy.mjs"], agent: { model: "ollama/none" } }),
    });
    const pids = join(dir, "pids");
    const server = { name: "own", command: process.execPath, args: [join(dir, "stubborn.mjs"), pids], env: [] };
    const programs = [new Program(dir), new Program(dir, ["--log-file", "acp.log", "--log-level", "debug"])] as const;
    for (const program of programs) {
      expect(await program.initialize()).toMatchObject({ result: { protocolVersion: 1 } });
      expect(await program.request("session/new", { cwd: dir, mcpServers: [server] })).toMatchObject({
        result: { sessionId: expect.any(String) },
      });
    }
    programs[0].child.stdin?.end();
    programs[1].child.kill("SIGTERM");
    expect(await Promise.all(programs.map((program) => program.ended()))).toEqual([0, 143]);
    const started = readFileSync(pids, "utf8").trim().split("\n").map(Number);
    expect(started).toHaveLength(2);
    expect(started.filter(isAlive)).toEqual([]);
    for (const program of programs) {
      expect(program.messages.every(({ jsonrpc }) => jsonrpc === "2.0")).toBe(true);
      expect(program.stdout).not.toContain("noise");
      const stderr = await program.stderr;
      const ways = ["console", "stream", "named", "default", "require"];
      const ofFiles = ["writeFileSync", "appendFileSync", "writeFile", "promise", "named promise"];
      for (const way of [...ways, ...ofFiles]) expect(stderr).toContain(`noise by ${way}\n`);
      expect(stderr).not.toContain("took too long");
    }
    // [guard-20g] once, and where the log goes.
    const logs = [await programs[0].stderr, await programs[1].stderr, readFileSync(join(dir, "acp.log"), "utf8")];
    expect(logs.join("").split('Consider "guard": "balanced"')).toHaveLength(2);
  }, 60_000);

  it("tells a client why it cannot start, and ends", async () => {
    const program = new Program(folder({ "toolcrib.json": '{ "mcpServers": 5 }' }));
    const answer = await program.initialize();
    expect(answer).toMatchObject({
      error: { message: expect.stringContaining("mcpServers"), data: { code: "invalid_config" } },
    });
    expect(await program.ended()).toBe(1);
    expect(program.messages).toHaveLength(1);
    expect(await program.stderr).toContain("mcpServers");
  }, 60_000);
});
