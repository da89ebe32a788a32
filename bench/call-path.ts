/**
 * What a call through the hub costs without any door, for whoever works on the call path:
 *
 *     node bench/call-path.ts [--calls=20000] [--only=local,stdio,http,1mib] [--root=dist]
 *     node --cpu-prof --cpu-prof-dir=/tmp/prof bench/call-path.ts --only=stdio
 *
 * Beside each stands the same work without the hub, so that the difference is what the hub adds.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";

const { values } = parseArgs({
  options: {
    calls: { type: "string", default: "20000" },
    only: { type: "string" },
    root: { type: "string", default: "src" },
  },
});
const CALLS = Number(values.calls);
const ONLY = values.only?.split(",");
const ECHO_STDIO = join(import.meta.dirname, "servers/echo-stdio.mjs");
const ECHO_HTTP = join(import.meta.dirname, "servers/echo-http.mjs");
const MIB = 1024 * 1024;

const entry = resolve(import.meta.dirname, "..", values.root, values.root === "src" ? "index.ts" : "index.js");
// The same exports, whether from source or from a build.
const { createHub, ToolRegistry } = (await import(pathToFileURL(entry).href)) as typeof import("../src/index.ts");

const home = mkdtempSync(join(tmpdir(), "toolcrib-bench-"));
const web = spawn(process.execPath, [ECHO_HTTP], { stdio: ["ignore", "pipe", "inherit"] });
const registry = new ToolRegistry();
registry.register({
  name: "echo",
  description: "Gives back its text.",
  parameters: { type: "object", properties: { text: { type: "string" } } },
  execute: (_id, { text }) => Promise.resolve({ content: [{ type: "text", text: String(text) }] }),
});
const hub = await createHub(
  {
    mcpServers: {
      pipe: { command: process.execPath, args: [ECHO_STDIO] },
      web: { url: await firstLine(web) },
    },
    limits: { callsPerMinute: 1_000_000_000, concurrency: 10_000 },
  },
  { home, registry },
);
const bare = barePipe();

try {
  const call = (name: string, args: Record<string, unknown>) => async (): Promise<void> => {
    const outcome = await hub.call({ name, arguments: args });
    if (!outcome.ok) throw new Error(outcome.error.message);
  };
  await measure("local", "in-process tool", CALLS, call("echo", { text: "hello" }));
  await measure("stdio", "bare pipe, no hub", CALLS, () => bare.call({ text: "hello" }));
  await measure("stdio", "stdio echo", CALLS, call("pipe__echo", { text: "hello" }));
  await measure("stdio", "stdio echo, 32 at once", CALLS, inTurns(32, call("pipe__echo", { text: "hello" })), 32);
  await measure("http", "HTTP echo", CALLS / 2, call("web__echo", { text: "hello" }));
  await measure("http", "HTTP echo, 32 at once", CALLS / 2, inTurns(32, call("web__echo", { text: "hello" })), 32);
  for (const kind of ["x", "prose", "json"]) {
    const args = { bytes: MIB, kind };
    await measure("1mib", `1 MiB of ${kind}, bare pipe`, 100, () => bare.call(args));
    await measure("1mib", `1 MiB of ${kind}, hub over stdio`, 100, call("pipe__echo", args));
  }
} finally {
  await hub.close();
  bare.child.stdin?.end();
  web.kill();
  rmSync(home, { recursive: true, force: true });
}

/** Times and CPU of one call; the first tenth is for the compiler. */
async function measure(
  group: string,
  what: string,
  calls: number,
  once: () => Promise<void>,
  width = 1,
): Promise<void> {
  if (ONLY !== undefined && !ONLY.includes(group)) return;
  for (let done = 0; done < calls / 10; done += width) await once();
  const times: number[] = [];
  const cpu = process.cpuUsage();
  const start = performance.now();
  for (let done = 0; done < calls; done += width) {
    const before = performance.now();
    await once();
    times.push((performance.now() - before) * 1000);
  }
  const perCallUs = ((performance.now() - start) * 1000) / calls;
  const { user, system } = process.cpuUsage(cpu);
  times.sort((a, b) => a - b);
  const p50 = (times[Math.floor(times.length / 2)] ?? 0) / width;
  console.log(
    `${what.padEnd(34)} p50 ${p50.toFixed(1).padStart(9)} µs   mean ${perCallUs.toFixed(1).padStart(9)} µs` +
      `   cpu ${((user + system) / calls).toFixed(1).padStart(9)} µs`,
  );
}

function inTurns(width: number, once: () => Promise<void>): () => Promise<void> {
  return async () => void (await Promise.all(Array.from({ length: width }, once)));
}

function barePipe(): { readonly child: ChildProcess; call(args: Record<string, unknown>): Promise<void> } {
  const child = spawn(process.execPath, [ECHO_STDIO], { stdio: ["pipe", "pipe", "inherit"] });
  let pieces: string[] = [];
  let done: (() => void) | undefined;
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    pieces.push(chunk);
    if (!chunk.endsWith("\n")) return;
    JSON.parse(pieces.join(""));
    pieces = [];
    done?.();
  });
  return {
    child,
    call: (args) =>
      new Promise((settle) => {
        done = settle;
        const params = { name: "echo", arguments: args };
        child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params })}\n`);
      }),
  };
}

function firstLine(child: ChildProcess): Promise<string> {
  return new Promise((settle, fail) => {
    child.stdout?.setEncoding("utf8").once("data", (text: string) => settle(text.trim()));
    child.once("exit", () => fail(new Error("The echo server ended before it said its address.")));
  });
}
