import { PassThrough } from "node:stream";
import { describe, expect, it } from "vitest";
import { Output, type Sink } from "../../src/cli/output.ts";

interface Captured {
  readonly out: Output;
  readonly stdout: () => string;
  readonly stderr: () => string;
}

function capture(
  options: { tty?: boolean; columns?: number; json?: boolean; quiet?: boolean; env?: NodeJS.ProcessEnv } = {},
): Captured {
  const sink = (): Sink & PassThrough =>
    Object.assign(new PassThrough(), { isTTY: options.tty ?? false, columns: options.columns ?? 80 });
  const [stdout, stderr] = [sink(), sink()];
  const out = new Output({
    stdout,
    stderr,
    env: options.env ?? {},
    json: options.json ?? false,
    quiet: options.quiet ?? false,
  });
  const read = (stream: PassThrough) => () => String(stream.read() ?? "");
  return { out, stdout: read(stdout), stderr: read(stderr) };
}

const columns = [
  { title: "NAME", cell: (row: string) => row },
  { title: "TEXT", cell: () => "word ".repeat(40), shrink: true },
];

describe("output", () => {
  it("[spine-19e] puts errors on stderr as text, on stdout as the error object with --json", () => {
    const error = { code: "denied", message: "No.", hint: "Ask.", details: { rule: "x" } } as const;
    const text = capture();
    text.out.error(error);
    expect([text.stdout(), text.stderr()]).toEqual(["", "error: No.\n  Ask.\n"]);
    const json = capture({ json: true });
    json.out.error(error);
    expect(JSON.parse(json.stdout())).toEqual({ error });
    expect(json.stderr()).toBe("");
  });

  it("says each warning once, and nothing but results and errors with --quiet", () => {
    const { out, stderr } = capture();
    for (let count = 0; count < 3; count++) out.warn("odd");
    expect(stderr()).toBe("warning: odd\n");
    const quiet = capture({ quiet: true });
    quiet.out.warn("odd");
    quiet.out.note("by the way");
    quiet.out.error({ code: "internal", message: "broken" });
    quiet.out.line("result");
    expect([quiet.stdout(), quiet.stderr()]).toEqual(["result\n", "error: broken\n"]);
  });

  it("paints on a terminal only, and not with NO_COLOR or a dumb terminal", () => {
    expect(capture({ tty: true }).out.paint("red", "x")).toBe("\u001b[31mx\u001b[39m");
    expect(capture().out.paint("red", "x")).toBe("x");
    expect(capture({ tty: true, env: { NO_COLOR: "1" } }).out.paint("red", "x")).toBe("x");
    expect(capture({ tty: true, env: { TERM: "dumb" } }).out.paint("red", "x")).toBe("x");
  });

  it("fits tables to a terminal and leaves them whole in a pipe", () => {
    const narrow = capture({ tty: true, columns: 30, env: { NO_COLOR: "1" } });
    narrow.out.table(columns, ["a"]);
    expect(
      narrow
        .stdout()
        .split("\n")
        .every((line) => line.length <= 30),
    ).toBe(true);
    const piped = capture({ columns: 30 });
    piped.out.table(columns, ["a"]);
    expect(piped.stdout()).toContain("word ".repeat(39));
  });

  it("takes control characters of servers out on a terminal, and keeps bytes in a pipe", () => {
    const evil = "\u001b]0;title\u0007text\u001b[2J\n\ttab";
    const terminal = capture({ tty: true });
    terminal.out.line(evil);
    expect(terminal.stdout()).toBe("]0;titletext[2J\n\ttab\n");
    const piped = capture();
    piped.out.line(evil);
    expect(piped.stdout()).toBe(`${evil}\n`);
    const error = capture();
    error.out.error({ code: "internal", message: evil });
    expect(error.stderr()).not.toContain("\u001b");
  });

  it("shows progress in place on a terminal only", () => {
    const terminal = capture({ tty: true, columns: 10 });
    terminal.out.transient("50 %  half of it");
    terminal.out.transient("");
    expect(terminal.stderr()).toBe("\r\u001b[K50 %  ha…\r\u001b[K");
    const sizeless = capture({ tty: true, columns: 0 });
    sizeless.out.transient("50 %  half of it");
    expect(sizeless.stderr()).toContain("half of it");
    const piped = capture();
    piped.out.transient("50 %");
    expect(piped.stderr()).toBe("");
  });

  it("flush ends also when the reader has gone", async () => {
    const gone = new PassThrough();
    gone.destroy();
    const out = new Output({ stdout: gone, stderr: new PassThrough(), env: {}, json: false, quiet: false });
    await expect(out.flush()).resolves.toBeUndefined();
  });
});
