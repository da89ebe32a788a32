import { describe, expect, it } from "vitest";
import { ToolcribError } from "../../../src/model/errors.ts";
import { windowsCommand } from "../../../src/upstream/stdio/stdio-wire.ts";

const ENV = { Path: "C:\\tools;C:\\Program Files\\nodejs", PATHEXT: ".EXE;.CMD", ComSpec: "C:\\Windows\\cmd.exe" };
const FILES = new Set(["C:\\tools\\python.exe", "C:\\Program Files\\nodejs\\npx.cmd"]);
const exists = (path: string): boolean => FILES.has(path);

/** Undoes one pass of cmd.exe: a caret makes the next character plain. Fails on a bare character that cmd would act on. */
function readByCmd(line: string): string {
  return line.replace(/\^(.)|[&|<>()%!"]/g, (found, escaped: string | undefined) => {
    if (escaped === undefined) throw new Error(`cmd.exe would act on ${found}`);
    return escaped;
  });
}

describe("windowsCommand", () => {
  it("starts a program directly", () => {
    const start = windowsCommand("python", ["-m", "a & b"], ENV, exists);
    expect(start).toEqual({ file: "C:\\tools\\python.exe", args: ["-m", "a & b"], verbatim: false });
  });

  it("leaves an unknown command as it is, so that its absence is reported", () => {
    expect(windowsCommand("nothing", [], ENV, exists)).toEqual({ file: "nothing", args: [], verbatim: false });
  });

  it("runs a batch file through cmd.exe, where no argument can become a command", () => {
    const args = ["-y", "a b", '" & calc.exe & "', "%PATH%", "x^y|z>out", "trailing\\"];
    const start = windowsCommand("npx", args, ENV, exists);
    expect(start).toMatchObject({ file: "C:\\Windows\\cmd.exe", verbatim: true });
    expect(start.args.slice(0, 3)).toEqual(["/d", "/s", "/c"]);
    const line = start.args[3]?.slice(1, -1) ?? "";
    const [program, ...rest] = line.split(/(?<!\^) /);
    expect(readByCmd(program ?? "")).toBe("C:\\Program Files\\nodejs\\npx.cmd");
    // Twice: once when cmd.exe reads its own line, once when the batch file hands its arguments on.
    expect(rest.map((argument) => readByCmd(readByCmd(argument)))).toEqual([
      '"-y"',
      '"a b"',
      '"\\" & calc.exe & \\""',
      '"%PATH%"',
      '"x^y|z>out"',
      '"trailing\\\\"',
    ]);
  });

  it("refuses a line break, which cannot be escaped", () => {
    expect(() => windowsCommand("npx", ["a\nb"], ENV, exists)).toThrow(ToolcribError);
  });
});
