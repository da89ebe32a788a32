/**
 * The net under every way out of this process. Children run in groups of their own, so they do not die with us:
 * on `exit` they are killed at once, and on a signal the hub is closed properly first.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { statSync } from "node:fs";
import { constants } from "node:os";
import { Writable } from "node:stream";
import { basename } from "node:path";
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { ToolcribError } from "../../model/errors.ts";
import { type ProcessFacts, type ProcessTable, systemProcessTable } from "./process-table.ts";
import { type NewChild, PidRecords } from "./pid-records.ts";
import { notSent } from "../wire.ts";

// One set for the process, because `exit` and signals are events of the process.
const groups = new Set<number>();

/** The returned function ends the watch; call it when the group is gone. */
function trackProcessGroup(pgid: number): () => void {
  if (groups.size === 0) process.on("exit", killProcessGroups);
  groups.add(pgid);
  return () => {
    if (groups.delete(pgid) && groups.size === 0) process.off("exit", killProcessGroups);
  };
}

/** At once, for a process that has to end before they would. */
export function killProcessGroups(): void {
  for (const pgid of groups) signalGroup(pgid, "SIGKILL");
}

type Closer = () => Promise<void>;
const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
/** By closer: whether it gives way to a program that listens for the signal itself. */
const closers = new Map<Closer, boolean>();
let closing = false;

export interface SignalOptions {
  /** Do nothing if the program has a listener of its own: how it ends is its business then. */
  readonly unlessHandled?: boolean;
}

/**
 * From now on SIGINT, SIGTERM and SIGHUP run `close` and then end the process as that signal would have; a second
 * signal ends it at once. Several hubs may ask for it. The returned function takes it back.
 */
export function closeOnSignals(close: Closer, { unlessHandled = false }: SignalOptions = {}): () => void {
  if (closers.size === 0) for (const signal of SIGNALS) process.on(signal, onSignal);
  closers.set(close, unlessHandled);
  return () => {
    if (closers.delete(close) && closers.size === 0) stopListening();
  };
}

function stopListening(): void {
  for (const signal of SIGNALS) process.off(signal, onSignal);
}

function onSignal(signal: NodeJS.Signals): void {
  const isHandled = process.listenerCount(signal) > 1;
  const due = [...closers].filter(([, unlessHandled]) => !(unlessHandled && isHandled)).map(([close]) => close);
  if (due.length === 0) return;
  if (closing) return endProcess(signal);
  closing = true;
  // A close that fails must not keep the process; what it left is killed on the way out.
  void Promise.allSettled(due.map(async (close) => close())).then(() => endProcess(signal));
}

function endProcess(signal: NodeJS.Signals): void {
  stopListening();
  // The default action of a signal skips `exit` listeners.
  killProcessGroups();
  // Raised again, so that a shell sees that we died of it; but not if the program has a listener of its own, which
  // was called already.
  if (process.platform !== "win32" && process.listenerCount(signal) === 0) process.kill(process.pid, signal);
  process.exit(128 + constants.signals[signal]);
}

export interface EndOptions {
  /** From the first request to end until SIGKILL; asked again meanwhile, because there may come to be no time left. */
  readonly graceMs: number | (() => number);
  /** Of that, how long a closed stdin may take to be noticed before SIGTERM; 0 for a child that is beyond asking. */
  readonly stdinMs: number;
  /** Tried before SIGTERM, for a child that is only the launcher of the program. Never rejects. */
  readonly ask?: (() => Promise<void>) | undefined;
}

export interface TrackedChild {
  /** Why no record of it can be kept, or null. */
  readonly warning: string | null;
  /** Ends it and everything in its group. Never rejects. */
  end(options: EndOptions): Promise<void>;
}

/** Keeps track of a child: it ends with this process, and if this process is killed outright, with the next hub. */
export function trackChild(child: ChildProcess, pids: PidRecords, program: Omit<NewChild, "pid">): TrackedChild {
  const { pid } = child;
  const untrack = pid === undefined ? () => {} : trackProcessGroup(pid);
  return {
    warning: pid === undefined ? null : pids.add({ pid, ...program }),
    async end(options) {
      const isGroupGone = await endChild(child, options);
      untrack();
      const isGone = (await endMarked(program.mark, options)) && isGroupGone;
      // What could not be killed stays in the record: the next start tries again.
      if (isGone && pid !== undefined) pids.remove(pid);
      // A pipe that a stray process still holds would keep this process alive.
      for (const stream of child.stdio) stream?.destroy();
      child.unref();
    },
  };
}

/** For the extra pipes of a launcher: it gets these bytes, and the pipe is closed. */
export function writeToPipe(stream: unknown, bytes: Uint8Array): void {
  if (!(stream instanceof Writable)) return;
  // A launcher that fails does not read it; its exit says why.
  stream.on("error", () => {});
  stream.end(bytes);
}

const POLL_MS = 15;
/** SIGKILL needs no cooperation; only a process stuck inside the kernel takes longer. */
const MAX_KILL_WAIT_MS = 2000;

/** Ends a child and its group: closed stdin first, then SIGTERM, then SIGKILL. Resolves with whether the whole group is gone. Real time, not a Clock: the child lives in real time. */
async function endChild(child: ChildProcess, options: EndOptions): Promise<boolean> {
  const pgid = child.pid;
  if (pgid === undefined) return true;
  const hasExited = (): boolean => child.exitCode !== null || child.signalCode !== null;
  const isGone = (): boolean => hasExited() && !isGroupAlive(pgid);

  // Once the group was seen empty its id may pass to a stranger: no signal is sent after that.
  if (isGone()) return true;
  child.stdin?.end();
  const begun = performance.now();
  const { graceMs, stdinMs } = options;
  const left = (): number => (typeof graceMs === "number" ? graceMs : graceMs()) - (performance.now() - begun);
  const stdinLeft = (): number => Math.min(left(), stdinMs - (performance.now() - begun));
  if (stdinMs > 0 && (await waitUntil(isGone, stdinLeft, child))) return true;
  if (options.ask !== undefined) {
    let isOver = false;
    void options.ask().then(() => (isOver = true));
    await waitUntil(() => isOver || isGone(), left, child);
    if (isGone()) return true;
  }
  signalGroup(pgid, "SIGTERM");
  if (await waitUntil(isGone, left, child)) return true;
  signalGroup(pgid, "SIGKILL");
  const killed = performance.now();
  return waitUntil(isGone, () => MAX_KILL_WAIT_MS - (performance.now() - killed), child);
}

const STRAY_TERM_MS = 500;

/** Ends what a child started in groups or sessions of its own, which signals to its group do not reach. Resolves with whether all is gone. */
async function endMarked(mark: string | undefined, { graceMs }: EndOptions): Promise<boolean> {
  if (mark === undefined || table === null) return true;
  const grace = Math.min(STRAY_TERM_MS, typeof graceMs === "number" ? graceMs : graceMs());
  // A second round for what was started between the search and the signal.
  for (const signal of ["SIGTERM", "SIGKILL", "SIGKILL"] as const) {
    const strays = ((await findMarked(table)).get(mark) ?? []).filter(({ pid }) => pid !== process.pid);
    if (strays.length === 0) return true;
    for (const { pid } of strays) {
      try {
        process.kill(pid, signal);
      } catch {
        // Gone meanwhile, or of another user: then it stays in the record.
      }
    }
    const isLeft = ({ pid, startTime }: ProcessFacts): boolean => table.find(pid)?.startTime === startTime;
    const waitMs = signal === "SIGTERM" ? grace : MAX_KILL_WAIT_MS;
    for (let waited = 0; waited < waitMs && strays.some(isLeft); waited += POLL_MS) await sleep(POLL_MS);
  }
  return ((await findMarked(table)).get(mark) ?? []).length === 0;
}

let search: Promise<ReturnType<ProcessTable["marked"]>> | null = null;

/** One look at all processes for all children that end in the same turn: a hub that closes may have thirty. */
function findMarked(processes: ProcessTable): Promise<ReturnType<ProcessTable["marked"]>> {
  search ??= nextTurn().then(() => {
    search = null;
    return processes.marked();
  });
  return search;
}

/** Its timer keeps the process alive on purpose: `await close()` must come back. */
function waitUntil(isTrue: () => boolean, leftMs: () => number, child: ChildProcess): Promise<boolean> {
  return new Promise((resolve) => {
    const check = (): void => {
      const outcome = isTrue();
      if (!outcome && leftMs() > 0) return;
      clearInterval(poll);
      child.off("exit", check);
      resolve(outcome);
    };
    const poll = setInterval(check, POLL_MS);
    child.on("exit", check);
    check();
  });
}

const table: ProcessTable | null = systemProcessTable();

/** Whether anyone in the group was there to get the signal. Signal 0 only asks. */
function signalGroup(pgid: number, signal: NodeJS.Signals | 0): boolean {
  if (process.platform === "win32") return signalTree(pgid, signal);
  try {
    process.kill(-pgid, signal);
    return true;
  } catch (error) {
    // EPERM: someone is there who changed user; we cannot end it, and it must not be taken for gone.
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

/** The system counts zombies as members; where no process collects them (a container without an init), they stay for ever. */
function isGroupAlive(pgid: number): boolean {
  if (!signalGroup(pgid, 0)) return false;
  return table === null || process.platform !== "linux" || table.group(pgid).length > 0;
}

/** One child and everything it started: on POSIX its process group, on Windows its process tree. */
function signalTree(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    if (signal === 0) return process.kill(pid, 0);
    // Windows has no SIGTERM: a program without a window can only be ended outright.
    spawn("taskkill", ["/pid", String(pid), "/T", "/F"], { stdio: "ignore", windowsHide: true }).on("error", () => {});
    return true;
  } catch {
    return false;
  }
}

const INSTALL_HINTS: Readonly<Record<string, string>> = {
  npx: "It comes with Node.js: https://nodejs.org",
  npm: "It comes with Node.js: https://nodejs.org",
  node: "It is Node.js: https://nodejs.org",
  uvx: "It comes with uv: https://docs.astral.sh/uv",
  uv: "https://docs.astral.sh/uv",
  bunx: "It comes with Bun: https://bun.sh",
  docker: "https://docs.docker.com/get-docker",
  podman: "https://podman.io",
};

/** Checked before, because a missing folder and a missing program are the same ENOENT to spawn. */
export function workingFolderError(cwd: string | undefined): ToolcribError | null {
  if (cwd === undefined || statSync(cwd, { throwIfNoEntry: false })?.isDirectory() === true) return null;
  return startUnavailable(`the working directory does not exist: ${cwd}`, "Create it, or correct `cwd`.", "ENOENT");
}

/** Why a program could not be started, in words a person can act on. */
export function startError(error: unknown, command: string): ToolcribError {
  const code = error instanceof Error && "code" in error ? String(error.code) : undefined;
  if (code === "ERR_INVALID_ARG_VALUE") {
    return notSent("invalid_config", "`command`, `args`, `env` or `cwd` contains a null character.");
  }
  if (code === "ENOENT") {
    const more = INSTALL_HINTS[basename(command).replace(/\.(cmd|exe|bat)$/i, "")];
    // Some clients take a whole line; here it is the name of a program.
    const hint = /^\S+\s+\S/.test(command)
      ? "`command` is the program alone. Put what follows it into `args`."
      : `Install it or give its full path as \`command\`.${more === undefined ? "" : ` ${more}`}`;
    return startUnavailable(`command not found: ${command}`, hint, code);
  }
  const known = START_FAILURES.find(({ codes }) => code !== undefined && codes.includes(code));
  if (known !== undefined) return startUnavailable(known.message(command, code), known.hint, code);
  const reason = error instanceof Error ? error.message : String(error);
  return startUnavailable(`could not start ${command}: ${reason}`, undefined, code);
}

const START_FAILURES = [
  {
    codes: ["EACCES", "EPERM"],
    message: (command: string) => `command may not be executed: ${command}`,
    hint: "Check that it is a program and marked as executable.",
  },
  {
    codes: ["ENOEXEC"],
    message: (command: string) => `command is not a program for this system: ${command}`,
    hint: "A script needs a first line such as #!/usr/bin/env node.",
  },
  {
    codes: ["E2BIG"],
    message: () => "the arguments and environment are too long for this system",
    hint: "Shorten `args` or `env`.",
  },
  {
    codes: ["EAGAIN", "EMFILE", "ENFILE", "ENOMEM"],
    message: (_command: string, code?: string) => `the system has no room for another process (${code})`,
    hint: "Close programs or raise the limits.",
  },
];

function startUnavailable(message: string, hint: string | undefined, code: string | undefined): ToolcribError {
  return notSent("server_unavailable", message, hint, { reason: code });
}
