/** Runs the real command line as a child process, in a folder and a home of its own. */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { onTestFinished } from "vitest";
import { runCommandLine } from "../../src/cli/program.ts";
import { readHubRecords } from "../../src/hub/activity/hub-records.ts";
import { serverFile } from "../support/bundled-servers.ts";
import { COMPILE_CACHE, MAIN, SOURCE_MAIN, PATIENT } from "../support/main-program.ts";

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
  return { command: process.execPath, args: [serverFile(name), ...args] };
}

export function misbehaving(...args: string[]): Record<string, unknown> {
  return { command: process.execPath, args: [join(ROOT, "test/fixtures/misbehaving-server.mjs"), ...args] };
}

export const missingProgram = { command: "toolcrib-no-such-program" };

interface Here {
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  readonly input?: string;
  /** What a person types at a terminal; there is none without it. */
  readonly typed?: string;
}

/**
 * The command line in this process, in a quarter of the time of a process of its own. Not for what speaks a protocol on its
 * streams, or starts itself again.
 */
export async function runHere(args: readonly string[], { env, cwd, input = "", typed }: Here): Promise<Finished> {
  const isTTY = typed !== undefined;
  const [stdout, stderr] = [new PassThrough(), Object.assign(new PassThrough(), { isTTY })];
  // Read from the start: whoever writes much waits for a reader.
  const read = [stdout, stderr].map((stream) => text(stream));
  const keys = Object.assign(new PassThrough(), { isTTY });
  if (isTTY) keys.write(typed);
  else keys.end(input);
  // The part of a stream of the process that commands use.
  const stdin = keys as unknown as NodeJS.ReadStream;
  const code = await runCommandLine(args, { env, cwd, stdin, stdout, stderr });
  for (const stream of [stdout, stderr]) stream.end();
  const [out, err] = await Promise.all(read);
  return { code, stdout: out ?? "", stderr: err ?? "", json: <T>() => JSON.parse(out ?? "") as T };
}

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

  runHere(args: readonly string[], { env, ...options }: Partial<Here> = {}): Promise<Finished> {
    return runHere(args, { cwd: this.dir, ...options, env: { ...this.env(), ...env } });
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

/** Gone after the test. */
export function workspace(): Workspace {
  const made = new Workspace();
  onTestFinished(() => made.remove());
  return made;
}
