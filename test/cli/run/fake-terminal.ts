/** Streams that stand in for a terminal or a pipe, and what was written to them. */
import { PassThrough } from "node:stream";
import { Output, type Sink } from "../../../src/cli/output.ts";

export interface FakeStreams {
  readonly stdin: NodeJS.ReadStream & PassThrough;
  readonly stdout: Sink;
  readonly stderr: Sink;
  /** What was written so far. */
  written(): { stdout: string; stderr: string };
}

export function fakeStreams({ isTTY = false }: { readonly isTTY?: boolean } = {}): FakeStreams {
  const [stdout, stderr] = [sink(isTTY), sink(isTTY)];
  const input = Object.assign(new PassThrough(), { isTTY, setRawMode: () => input });
  const read = { stdout: "", stderr: "" };
  stdout.on("data", (chunk: Buffer) => (read.stdout += chunk.toString("utf8")));
  stderr.on("data", (chunk: Buffer) => (read.stderr += chunk.toString("utf8")));
  // Only what readline and the commands use of a terminal is there.
  return { stdin: input as unknown as FakeStreams["stdin"], stdout, stderr, written: () => ({ ...read }) };
}

function sink(isTTY: boolean): PassThrough & { isTTY: boolean; columns: number } {
  return Object.assign(new PassThrough(), { isTTY, columns: 80 });
}

export function outputTo(
  { stdout, stderr }: FakeStreams,
  json = false,
  env: NodeJS.ProcessEnv = { NO_COLOR: "1" },
): Output {
  return new Output({ stdout, stderr, env, json, quiet: false });
}
