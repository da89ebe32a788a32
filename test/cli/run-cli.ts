/** Runs the real command line as a child process, in a folder and a home of its own. */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { afterEach, vi } from "vitest";
import { runCommandLine } from "../../src/cli/program.ts";
import { readHubRecords } from "../../src/hub/activity/hub-records.ts";
import { COMPILE_CACHE, MAIN, SOURCE_MAIN, PATIENT } from "../support/main-program.ts";

// Each test starts several processes, which takes long on a machine that is busy with other tests.
vi.setConfig({ testTimeout: 120_000 });

const ROOT = resolve(import.meta.dirname, "../..");
export const BIN = join(ROOT, "bin/toolcrib.js");

export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  json<T = unknown>(): T;
}

export interface RunOptions {
  readonly input?: string;
  readonly env?: NodeJS.ProcessEnv;
  readonly nodeArgs?: readonly string[];
  readonly main?: string;
  /** Nobody reads stdout: the pipe is closed at once. */
  readonly readerGone?: boolean;
  /** Whoever started it writes to its input, and ends it. */
  readonly open?: boolean;
}

/** A bundled real server as a config entry. */
export function bundled(name: "everything" | "filesystem" | "memory", ...args: string[]): Record<string, unknown> {
  const main = join(ROOT, `node_modules/@modelcontextprotocol/server-${name}/dist/index.js`);
  return { command: process.execPath, args: [main, ...args] };
}

export function misbehaving(...args: string[]): Record<string, unknown> {
  return { command: process.execPath, args: [join(ROOT, "test/fixtures/misbehaving-server.mjs"), ...args] };
}

export const missingProgram = { command: "toolcrib-no-such-program" };

export class Workspace {
  // Resolved, because servers report real paths and a temporary folder may be a link.
  readonly dir = realpathSync(mkdtempSync(join(tmpdir(), "toolcrib-cli-")));
  readonly home = join(this.dir, "home");
  readonly configFile = join(this.dir, "toolcrib.json");
  readonly #children = new Set<ChildProcess>();

  constructor() {
    mkdirSync(this.home);
  }

  configure(mcpServers: Record<string, unknown>, rest: Record<string, unknown> = {}): void {
    writeFileSync(this.configFile, JSON.stringify({ mcpServers, ...rest }, null, 2));
  }

  write(name: string, content: string): string {
    const path = join(this.dir, name);
    writeFileSync(path, content);
    return path;
  }

  read(name: string): string {
    return readFileSync(join(this.dir, name), "utf8");
  }

  start(args: readonly string[], options: RunOptions = {}): { child: ChildProcess; finished: Promise<Finished> } {
    // Hooks into modules need the sources.
    const main = options.main ?? (options.nodeArgs === undefined ? MAIN : SOURCE_MAIN);
    const child = spawn(process.execPath, [...(options.nodeArgs ?? []), main, ...args], {
      cwd: this.dir,
      env: { ...COMPILE_CACHE, ...this.env(), ...options.env },
      stdio: ["pipe", "pipe", "pipe"],
    });
    this.#children.add(child);
    // The command may end without having read its input.
    child.stdin.on("error", () => {});
    if (options.open !== true) child.stdin.end(options.input ?? "");
    const exited = new Promise<number | null>((done) => child.on("close", (code) => done(code)));
    if (options.readerGone === true) child.stdout.destroy();
    const output = options.readerGone === true ? "" : text(child.stdout);
    const finished = Promise.all([exited, output, text(child.stderr)]).then(([code, stdout, stderr]) => ({
      code,
      stdout,
      stderr,
      // What a test expects of the shape is what it checks next.
      json: <T>() => JSON.parse(stdout) as T,
    }));
    return { child, finished };
  }

  run(args: readonly string[], options: RunOptions = {}): Promise<Finished> {
    return this.start(args, options).finished;
  }

  /**
   * The same code in this process, for the many cases that start no server: quick, and its output is no pipe's.
   * @param typed What a person types at a terminal; there is none without it.
   */
  async runHere(args: readonly string[], { typed }: { readonly typed?: string } = {}): Promise<Finished> {
    const isTTY = typed !== undefined;
    const [stdout, stderr] = [new PassThrough(), Object.assign(new PassThrough(), { isTTY })];
    const env = this.env();
    // Read from the start: whoever writes much waits for a reader.
    const read = [stdout, stderr].map((stream) => text(stream));
    const keys = Object.assign(new PassThrough(), { isTTY });
    keys.write(typed ?? "");
    // The part of a terminal that commands use.
    const stdin = isTTY ? (keys as unknown as NodeJS.ReadStream) : process.stdin;
    const code = await runCommandLine(args, { env, cwd: this.dir, stdin, stdout, stderr });
    for (const stream of [stdout, stderr]) stream.end();
    const [out, err] = await Promise.all(read);
    return { code, stdout: out ?? "", stderr: err ?? "", json: <T>() => JSON.parse(out ?? "") as T };
  }

  /** The config is named: one that is found in the working directory would have to be trusted first. */
  env(): NodeJS.ProcessEnv {
    const named = existsSync(this.configFile) ? { TOOLCRIB_CONFIG: this.configFile } : {};
    return { PATH: process.env["PATH"], HOME: this.home, ...PATIENT, TOOLCRIB_HOME: this.home, ...named };
  }

  remove(): void {
    for (const child of this.#children) if (child.exitCode === null) child.kill("SIGKILL");
    // A client that was connected has started it.
    for (const { pid, background } of readHubRecords(this.home)) if (background === true) process.kill(pid, "SIGKILL");
    // What was killed may have written a file meanwhile.
    rmSync(this.dir, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
  }
}

const open = new Set<Workspace>();

/** Gone after the test. */
export function workspace(): Workspace {
  const made = new Workspace();
  open.add(made);
  return made;
}

afterEach(() => {
  for (const each of open) each.remove();
  open.clear();
});
