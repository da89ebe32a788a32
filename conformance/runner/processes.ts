/** Programs that a run starts: each has a limited time, and none outlives the run. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createWriteStream } from "node:fs";

const STOP_MS = 10_000;

export interface Running extends AsyncDisposable {
  /** The first match in what it writes to either of its outputs. Rejects if it ends or is too slow. */
  said(pattern: RegExp, timeoutMs: number): Promise<string>;
  /** What it wrote, for a message. */
  output(): string;
}

export interface StartOptions {
  readonly env?: NodeJS.ProcessEnv;
}

export function start(args: readonly string[], { env = {} }: StartOptions = {}): Running {
  const child = spawn(process.execPath, args, {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let written = "";
  const exit = once(child, "close");
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => (written += text));
  }
  return {
    output: () => written,
    async said(pattern, timeoutMs) {
      const until = Date.now() + timeoutMs;
      for (;;) {
        const found = pattern.exec(written)?.[0];
        if (found !== undefined) return found;
        if (child.exitCode !== null || child.signalCode !== null)
          throw new Error(`${args.join(" ")} ended:\n${written}`);
        if (Date.now() > until) throw new Error(`${args.join(" ")} did not say ${String(pattern)}:\n${written}`);
        await tick();
      }
    },
    async [Symbol.asyncDispose]() {
      await stop(child, exit);
    },
  };
}

/** Runs a program to its end; its output goes to a file. */
export async function runToEnd(args: readonly string[], log: string, timeoutMs: number): Promise<number | null> {
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
  const file = createWriteStream(log);
  child.stdout.pipe(file, { end: false });
  child.stderr.pipe(file, { end: false });
  const exit = once(child, "close");
  const timer = setTimeout(() => void child.kill("SIGKILL"), timeoutMs);
  try {
    await exit;
  } finally {
    clearTimeout(timer);
    // It is read next.
    await new Promise<void>((done) => file.end(done));
  }
  if (child.signalCode !== null) throw new Error(`${args.join(" ")} took longer than ${timeoutMs} ms; see ${log}`);
  return child.exitCode;
}

async function stop(child: ChildProcess, exit: Promise<unknown>): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGTERM");
  const timer = setTimeout(() => void child.kill("SIGKILL"), STOP_MS);
  await exit;
  clearTimeout(timer);
}

function tick(): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, 50));
}
