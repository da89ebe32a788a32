/**
 * Runs what takes minutes, such as npm or the build of an image, in a process group of its own: it ends when the signal
 * aborts, with this process, and if this process is killed outright, with the next hub on the same home.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { PidRecords } from "../../orphans/pid-records.ts";
import { endChild } from "../../stdio/end-child.ts";
import { watchGroup } from "../../stdio/live-children.ts";
import { calledOff, notStarted, type ProgramEnd, type ProgramRun, tookTooLong } from "./run-engine.ts";

export interface Holder {
  readonly home: string;
  /** The server that it is done for. */
  readonly serverId: string;
}

/** From SIGTERM to SIGKILL. */
const GRACE_MS = 2000;
const KEPT_CHARS = 64 * 1024;

/** Any exit code is an answer. Rejects as runToEnd does, when everything that was started has ended. */
export async function runHeld(
  program: string,
  args: readonly string[],
  { env, cwd, timeoutMs, signal, home, serverId }: ProgramRun & Holder,
): Promise<ProgramEnd> {
  if (signal?.aborted === true) throw calledOff(program);
  const child = spawn(program, args, {
    env,
    cwd,
    stdio: ["ignore", "pipe", "pipe"],
    detached: process.platform !== "win32",
    windowsHide: true,
  });
  const pids = new PidRecords(join(home, "run"));
  const unwatch = child.pid === undefined ? () => {} : watchGroup(child.pid);
  if (child.pid !== undefined) pids.add({ pid: child.pid, serverId, command: program, args });
  const [stdout, stderr] = [endOf(child.stdout), endOf(child.stderr)];
  const limit = Promise.withResolvers<never>();
  const onAbort = (): void => limit.reject(calledOff(program));
  const timer = setTimeout(() => limit.reject(tookTooLong(program, args, timeoutMs)), timeoutMs);
  signal?.addEventListener("abort", onAbort, { once: true });
  try {
    const code = await Promise.race([exitOf(child, program), limit.promise]);
    return { code, stdout: stdout(), stderr: stderr() };
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", onAbort);
    const gone = await endChild(child, { graceMs: GRACE_MS, stdinMs: 0 });
    unwatch();
    // What could not be killed stays in the record: the next start tries again.
    if (gone) pids.close();
    for (const stream of child.stdio) stream?.destroy();
  }
}

function exitOf(child: ChildProcess, program: string): Promise<number> {
  return new Promise((resolve, reject) => {
    child.once("error", (error) => reject(notStarted(program, error)));
    child.once("close", (code) => resolve(code ?? -1));
  });
}

/** Keeps the last of what it says. */
function endOf(stream: Readable): () => string {
  let text = "";
  stream.setEncoding("utf8");
  stream.on("error", () => {});
  stream.on("data", (chunk: string) => (text = (text + chunk).slice(-KEPT_CHARS)));
  return () => text;
}
