/** Starts a hub in the background, detached from the command that needs it. Of several at once, one starts it. */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, closeSync, mkdirSync, openSync, readFileSync, renameSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { withLock } from "../../files/lock-file.ts";
import { findHub, type HubRecord } from "../../hub/activity/hub-records.ts";
import { ToolcribError } from "../../model/errors.ts";
import { MARK_VARIABLE } from "../../upstream/stdio/process-table.ts";

export interface HubPlace {
  readonly home: string;
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  /** The config that it serves. */
  readonly files: readonly string[];
  /** As `--config` names it. */
  readonly config?: string | undefined;
  /** The program to start; this one if absent. */
  readonly entry?: string | undefined;
}

/** Many clients may start at once, on a busy machine. */
const MAX_START_MS = 60_000;
const LOOK_MS = 20;
const MAX_LOG_BYTES = 5 * 1024 * 1024;
const SHOWN_LINES = 5;

/** Rejects with `server_unavailable` and the end of its log if it does not start. */
export async function startHub(place: HubPlace): Promise<HubRecord> {
  return withStartLock(place, async () => finderOf(place)() ?? spawnHub(place));
}

/** Ends the hub of this process and starts another in its place. No client starts one meanwhile. */
export async function replaceHub(place: HubPlace, end: () => Promise<void>): Promise<void> {
  await withStartLock(place, async () => {
    await end();
    await spawnHub(place);
  });
}

function withStartLock<Value>({ home, files }: HubPlace, task: () => Promise<Value>): Promise<Value> {
  const folder = join(home, "hubs");
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  chmodSync(folder, 0o700);
  return withLock(join(folder, `start-${keyOf(files)}`), task, { waitMs: MAX_START_MS });
}

function finderOf({ home, files }: HubPlace): () => HubRecord | undefined {
  return () => findHub(home, files);
}

export function hubLogFile(home: string, files: readonly string[]): string {
  return join(home, "hubs", `hub-${keyOf(files)}.log`);
}

function keyOf(files: readonly string[]): string {
  return createHash("sha256").update(JSON.stringify(files)).digest("hex").slice(0, 12);
}

async function spawnHub(place: HubPlace): Promise<HubRecord> {
  const { env, cwd, files, config, entry = process.argv[1] ?? "" } = place;
  const find = finderOf(place);
  const logFile = hubLogFile(place.home, files);
  const log = openLog(logFile);
  const from = statSync(logFile).size;
  const args = ["serve", "--background", "--log-format", "json", ...(config === undefined ? [] : ["--config", config])];
  // A project's config is found from the working directory. Otherwise the hub must not keep the client's folder in use.
  const child = spawn(process.execPath, [entry, ...args], {
    cwd: files.length > 1 || config !== undefined ? cwd : homedir(),
    // Not part of the server that may have started this process, with which it would end.
    env: { ...env, [MARK_VARIABLE]: undefined },
    detached: true,
    stdio: ["ignore", log, log],
    windowsHide: true,
  });
  closeSync(log);
  let failure: string | undefined;
  child.once("error", (error) => (failure = error.message));
  child.once("exit", (code, signal) => (failure ??= `it ended with ${code ?? signal}`));
  child.unref();
  const until = performance.now() + MAX_START_MS;
  for (;;) {
    const hub = find();
    if (hub !== undefined) return hub;
    if (failure !== undefined || performance.now() > until) {
      const lines = readFileSync(logFile).subarray(from).toString("utf8").trim().split("\n").slice(-SHOWN_LINES);
      const reason = failure ?? `it was not ready within ${MAX_START_MS} ms`;
      throw new ToolcribError("server_unavailable", `The hub did not start: ${reason}. ${lastMessage(lines)}`.trim(), {
        hint: `Its log is ${logFile}.`,
      });
    }
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}

/** Appended to; a large one is put aside first. */
function openLog(file: string): number {
  try {
    if (statSync(file).size > MAX_LOG_BYTES) renameSync(file, `${file}.1`);
  } catch {
    // There is none yet.
  }
  return openSync(file, "a", 0o600);
}

function lastMessage(lines: readonly string[]): string {
  const last = lines.at(-1) ?? "";
  return last.replace(/^error: /, "");
}
