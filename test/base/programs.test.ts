import { describe, expect, it } from "vitest";
import { findProgram, runProgram } from "../../src/base/programs.ts";

const run = (code: string, options: Partial<Parameters<typeof runProgram>[2]> = {}): ReturnType<typeof runProgram> =>
  runProgram(process.execPath, ["-e", code], { env: process.env, ...options });

describe("running a program", () => {
  it("returns its output and its exit code", async () => {
    expect(await run("process.stdout.write('out'); process.stderr.write('err'); process.exitCode = 3")).toEqual({
      kind: "exited",
      code: 3,
      stdout: "out",
      stderr: "err",
    });
  });

  it("gives it the input, or an empty one", async () => {
    const echo = "process.stdin.pipe(process.stdout)";
    expect(await run(echo, { input: "hello" })).toMatchObject({ stdout: "hello" });
    expect(await run(echo)).toMatchObject({ stdout: "" });
  });

  it("tells a missing program, a timeout, an abort, a flood and a kill apart", async () => {
    const wait = "setTimeout(() => {}, 60_000)";
    expect(await runProgram("no-such-program-here", [], { env: process.env })).toEqual({ kind: "not_found" });
    expect(await run(wait, { timeoutMs: 50 })).toEqual({ kind: "timed_out" });
    const controller = new AbortController();
    const aborted = run(wait, { signal: controller.signal });
    controller.abort();
    expect(await aborted).toEqual({ kind: "aborted" });
    expect(await run(wait, { signal: controller.signal })).toEqual({ kind: "aborted" });
    expect(await run("process.stdout.write('x'.repeat(5000))", { maxOutputBytes: 1000 })).toEqual({
      kind: "too_much_output",
    });
    expect(await run("process.kill(process.pid, 'SIGKILL')")).toMatchObject({ kind: "killed", signal: "SIGKILL" });
  });
});

describe("finding a program", () => {
  const isProgram = (path: string): boolean =>
    ["/usr/bin/git", "C:\\tools\\npx.cmd", "C:\\tools\\x.exe"].includes(path);

  it("searches the absolute folders of PATH", () => {
    const env = { PATH: "bin:/opt:/usr/bin" };
    expect(findProgram("git", { env, platform: "linux", isProgram })).toBe("/usr/bin/git");
    expect(findProgram("hg", { env, platform: "linux", isProgram })).toBeUndefined();
    for (const name of ["", "..", "./git", "/usr/bin/git"]) {
      expect(findProgram(name, { env, platform: "linux", isProgram })).toBeUndefined();
    }
  });

  it("knows the endings, the case and the quotes of Windows", () => {
    const env = { Path: 'C:\\windows;"C:\\tools"' };
    expect(findProgram("npx", { env, platform: "win32", isProgram })).toBe("C:\\tools\\npx.cmd");
    expect(findProgram("x.exe", { env, platform: "win32", isProgram })).toBe("C:\\tools\\x.exe");
  });
});
