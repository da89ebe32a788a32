import { chmodSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { childEnvironment } from "../../../src/upstream/stdio/child-environment.ts";
import { type NewChild, PidRecords } from "../../../src/upstream/stdio/pid-records.ts";
import { isAlive } from "../../support/processes.ts";
import { openOn, pids, wireOn } from "./stdio-bench.ts";

const never = new AbortController().signal;

describe("StdioWire: messages", () => {
  it("carries requests, answers and notifications both ways", async () => {
    const bench = await openOn("progress", "3");
    const result = await bench.ask("tools/call", {
      name: "echo",
      arguments: { text: "a\u2028b\n😀" },
      _meta: { progressToken: "t" },
    });
    expect(result).toEqual({ content: [{ type: "text", text: "a\u2028b\n😀" }] });
    expect(bench.messages.filter((message) => "method" in message)).toHaveLength(3);
  });

  it("carries many requests at once, and what was sent just before it is closed", async () => {
    const bench = await openOn("ok");
    const texts = Array.from({ length: 200 }, (_, n) => `${n} ${"x".repeat((n % 7) * 500)}`);
    expect(await Promise.all(texts.map((text) => bench.call("echo", { text })))).toEqual(texts);
    const sent = texts.map((_, n) => bench.wire.send({ jsonrpc: "2.0", method: "notifications/x", params: { n } }));
    await bench.wire.close();
    await expect(Promise.all(sent)).resolves.toHaveLength(200);
  });

  it("[speed-04g] carries large lines and small ones in their order, and those of a program that ends at once", async () => {
    const script = `
      const line = (n, bytes) => JSON.stringify({ jsonrpc: "2.0", method: "x", params: { n, text: "y".repeat(bytes) } });
      const sizes = [1, 300_000, 1, 1, 200_000, 1, 70_000, 70_000];
      process.stdout.write(sizes.map((bytes, n) => line(n, bytes)).join("\\n"));`;
    const bench = wireOn({ args: ["-e", script] });
    await bench.wire.open(never);
    await bench.lost;
    const got = bench.messages.map((message) => ("method" in message ? message.params : undefined));
    expect(got.map((params) => [params?.["n"], String(params?.["text"]).length])).toEqual(
      [1, 300_000, 1, 1, 200_000, 1, 70_000, 70_000].map((bytes, n) => [n, bytes]),
    );
  });

  it("[speed-05d] starts one program in each turn of the event loop", async () => {
    let turn = 0;
    const count = (): void => {
      turn++;
      counting = setImmediate(count);
    };
    let counting = setImmediate(count);
    const turns: number[] = [];
    const noted = new (class extends PidRecords {
      override add(child: NewChild): string | null {
        turns.push(turn);
        return super.add(child);
      }
    })(mkdtempSync(join(tmpdir(), "toolcrib-run-")));
    const wires = Array.from({ length: 5 }, () => wireOn({ pids: noted }).wire);
    try {
      await Promise.all(wires.map((wire) => wire.open(never)));
    } finally {
      clearImmediate(counting);
    }
    expect(new Set(turns).size).toBe(5);
  });

  it("one that is closed before its turn has come is not started", async () => {
    const first = wireOn();
    const second = wireOn();
    const opening = [first.wire.open(never), second.wire.open(never)];
    await second.wire.close();
    await opening[0];
    await expect(opening[1]).rejects.toMatchObject({ code: "cancelled" });
    expect(pids.pidsOf("test")).toHaveLength(1);
  });

  it("rejects what JSON cannot carry", async () => {
    const bench = await openOn("ok");
    await expect(bench.wire.send({ jsonrpc: "2.0", method: "x", params: { n: 1n } })).rejects.toThrow(/BigInt/);
    expect(await bench.call("echo", { text: "still here" })).toBe("still here");
  });

  it("[spine-09e] survives junk on stdout and warns of it", async () => {
    const bench = await openOn("junk");
    for (let n = 0; n < 50; n++) await bench.call("echo", { text: "x" });
    expect(await bench.call("echo", { text: "still here" })).toBe("still here");
    expect(bench.warnings).toHaveLength(5);
    expect(bench.warnings[0]).toContain("starting up...");
  });

  it("[spine-09e] drops a line above the limit and goes on", async () => {
    const bench = await openOn("huge-line", String(50 * 1024 * 1024), { maxLineBytes: 1024 * 1024 });
    expect(await bench.call("echo", { text: "after" })).toBe("after");
    expect(bench.warnings).toEqual([expect.stringContaining("dropped a line of 52428800 bytes")]);
  });

  it("takes a huge line within the limit", async () => {
    const bench = await openOn("ok");
    expect((await bench.call("big", { bytes: 20 * 1024 * 1024 })).length).toBe(20 * 1024 * 1024);
  });

  it("[spine-09e] keeps only the end of a flood on stderr, and is not blocked by it", async () => {
    const bench = await openOn("stderr-flood");
    expect(await bench.call("echo", { text: "dry" })).toBe("dry");
    const tail = bench.wire.stderrTail();
    expect(tail).toContain("warning: flood");
    expect(tail.length).toBeLessThanOrEqual(8 * 1024);
  });

  it("[spine-06c] gives the child the environment it was told and nothing else", async () => {
    const env = childEnvironment(
      { ...process.env, NODE_OPTIONS: "--no-warnings", LD_PRELOAD: "", SECRET: "s" },
      { NAMED: "yes" },
    );
    const bench = await openOn("ok", undefined, { env, cwd: tmpdir() });
    const seen: unknown = JSON.parse(await bench.call("env"));
    expect(seen).toMatchObject({ env, argv: ["ok"] });
    expect(Object.keys(env)).toContain("NAMED");
    expect(JSON.stringify(seen)).not.toMatch(/NODE_OPTIONS|LD_PRELOAD|SECRET/);
  });
});

describe("StdioWire: opening", () => {
  it("[spine-08b] names a command that is not there", async () => {
    const { wire } = wireOn({ command: "no-such-program-here" });
    await expect(wire.open(never)).rejects.toMatchObject({
      code: "server_unavailable",
      message: "command not found: no-such-program-here",
      hint: expect.stringContaining("full path"),
      details: { sent: false },
    });
  });

  it("[whole-01a] says of a whole line as the command where its arguments belong", async () => {
    const { wire } = wireOn({ command: "no-such-program-here -y it" });
    await expect(wire.open(never)).rejects.toMatchObject({ hint: expect.stringContaining("into `args`") });
  });

  it("[spine-08b] tells a missing folder from a missing command", async () => {
    const { wire } = wireOn({ cwd: "/no/such/folder" });
    await expect(wire.open(never)).rejects.toThrow("the working directory does not exist: /no/such/folder");
  });

  it("[spine-08b] names a file that may not be executed", async () => {
    const file = join(mkdtempSync(join(tmpdir(), "toolcrib-wire-")), "plain.txt");
    writeFileSync(file, "text");
    chmodSync(file, 0o600);
    await expect(wireOn({ command: file }).wire.open(never)).rejects.toThrow("command may not be executed");
  });

  it("refuses a null character without starting anything", async () => {
    await expect(wireOn({ args: ["a\0b"] }).wire.open(never)).rejects.toMatchObject({ code: "invalid_config" });
  });

  it("does not start when it was cancelled before", async () => {
    await expect(wireOn().wire.open(AbortSignal.abort())).rejects.toMatchObject({ code: "cancelled" });
  });
});

describe("StdioWire: loss", () => {
  it("[spine-08b] says the exit code and the last lines of stderr", async () => {
    const bench = await openOn("crash-on-start");
    const error = await bench.lost;
    expect(error).toMatchObject({ code: "server_unavailable", details: { exitCode: 3 } });
    expect(error.message).toBe(
      "exited with code 3; the last lines of its stderr:\nreading settings\nerror: MISBEHAVING_KEY is not set",
    );
  });

  it("says the signal that killed it", async () => {
    const bench = await openOn("ok");
    const { pid } = JSON.parse(await bench.call("pids"));
    process.kill(pid, "SIGKILL");
    expect((await bench.lost).message).toBe("was killed by SIGKILL");
  });

  it("hints at what is wrong when a program ends at once and silently", async () => {
    const bench = wireOn({ args: ["-e", "0"] });
    await bench.wire.open(never);
    expect(await bench.lost).toMatchObject({
      message: "exited with code 0",
      hint: expect.stringContaining("MCP server"),
    });
  });

  it("delivers what was written just before the exit, first", async () => {
    const bench = wireOn({ args: ["-e", `process.stdout.write('{"jsonrpc":"2.0","method":"last"}')`] });
    await bench.wire.open(never);
    await bench.lost;
    expect(bench.messages).toEqual([{ jsonrpc: "2.0", method: "last" }]);
  });

  it("counts a closed stdout as loss, and ends the process", async () => {
    const bench = wireOn({
      args: ["-e", "require('fs').closeSync(1); process.stderr.write(String(process.pid)); setInterval(() => {}, 1e6)"],
    });
    await bench.wire.open(never);
    const error = await bench.lost;
    expect(error.message).toContain("closed its output but is still running");
    await bench.wire.close();
    expect(isAlive(Number(bench.wire.stderrTail()))).toBe(false);
  });

  it("rejects what is sent afterwards as not sent", async () => {
    const bench = await openOn("ok");
    void bench.call("exit", { code: 4 });
    await bench.lost;
    await expect(bench.wire.send({ jsonrpc: "2.0", method: "x" })).rejects.toMatchObject({
      code: "server_unavailable",
      details: { sent: false },
    });
  });

  it("rejects what a closed stdin does not take as not sent", async () => {
    const script = "require('fs').closeSync(0); console.log('{\"method\":\"deaf\"}'); setInterval(() => {}, 1e6)";
    const bench = wireOn({ args: ["-e", script] });
    await bench.wire.open(never);
    await expect.poll(() => bench.messages.length).toBe(1);
    const attempt = async (): Promise<unknown> => {
      for (;;) await bench.wire.send({ jsonrpc: "2.0", method: "x" });
    };
    await expect(attempt()).rejects.toMatchObject({ code: "server_unavailable", details: { sent: false } });
  });
});
