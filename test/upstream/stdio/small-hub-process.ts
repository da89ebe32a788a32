/** Runs small-hub.ts and gives what it printed and how it ended. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

export interface SmallHub {
  readonly process: ChildProcess;
  readonly hub: number;
  readonly pid: number;
  readonly grandchild: number;
  /** The next line it prints. */
  line(): Promise<string>;
  /** [code, signal] */
  readonly ended: Promise<[number | null, NodeJS.Signals | null]>;
}

export async function startSmallHub(runDir: string, way: string, mode = "grandchild"): Promise<SmallHub> {
  const script = fileURLToPath(new URL("small-hub.ts", import.meta.url));
  const child = spawn(process.execPath, [script, runDir, way, mode], { stdio: ["ignore", "pipe", "ignore"] });
  const ended = once(child, "exit").then(([code, signal]): [number | null, NodeJS.Signals | null] => [code, signal]);
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const line = async (): Promise<string> => String((await lines.next()).value);
  return { process: child, ended, line, ...JSON.parse(await line()) };
}
