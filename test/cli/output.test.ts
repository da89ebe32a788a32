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
    const shown = (options: Parameters<typeof capture>[0]): string => {
      const { out, stdout } = capture(options);
      out.line(`a ${out.paint("red", "x")} b ${out.paint("bold", "y")}`);
      return stdout();
    };
    expect(shown({ tty: true })).toBe("a \u001b[31mx\u001b[39m b \u001b[1my\u001b[22m\n");
    expect(shown({})).toBe("a x b y\n");
    expect(shown({ tty: true, env: { NO_COLOR: "1" } })).toBe("a x b y\n");
    expect(shown({ tty: true, env: { TERM: "dumb" } })).toBe("a x b y\n");
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

  it("[trust-15a] shows control characters of servers instead of writing them, on a terminal and in a pipe", () => {
    const evil = "\u001b]0;title\u0007text\u001b[2J\r\n\ttab\r";
    const seen = "\\u{001B}]0;title\\u{0007}text\\u{001B}[2J\n\ttab\\u{000D}";
    for (const tty of [true, false]) {
      const { out, stdout, stderr } = capture({ tty, env: { NO_COLOR: "1" } });
      out.line(evil);
      expect(stdout()).toBe(`${seen}\n`);
      out.piece(evil);
      expect(stdout()).toBe(seen);
      out.table([{ title: "T", cell: () => `\u001b[31m${evil}` }], [1]);
      expect(stdout()).toBe("T\n\\u{001B}[31m\\u{001B}]0;title\\u{0007}text\\u{001B}[2J\n");
      for (const write of [
        () => out.note(evil),
        () => out.warn(evil),
        () => out.labelled("red", "x", evil),
        () => out.aside(evil),
        () => out.error({ code: "internal", message: evil, hint: evil }),
      ]) {
        write();
        expect(stderr().replaceAll(seen, "")).not.toMatch(/[^\n\x20-\x7e]/);
      }
    }
  });

  it("[trust-15a] lets no text of a server paint itself, also where colours are on", () => {
    const { out, stdout, stderr } = capture({ tty: true });
    out.line(`${out.paint("green", "ok \u001b[31mfake")} \u001b[32mok\u001b[39m`);
    expect(stdout()).toBe("\u001b[32mok \\u{001B}[31mfake\u001b[39m \\u{001B}[32mok\\u{001B}[39m\n");
    out.transient("50 %\u001b[2J\nnext");
    expect(stderr()).toBe("\r\u001b[K50 %\\u{001B}[2J next");
  });

  it("[trust-15b] escapes them in JSON, so that parsing gives the same value", () => {
    const value = { "k\u202e": "\u001b[31m \u200b \u{e0041} \u009b \ufeff é 日本 👨‍👩‍👧", list: ["\r\n"] };
    const { out, stdout } = capture();
    for (const write of [() => out.value(value), () => out.record(value)]) {
      write();
      const text = stdout();
      expect(text).not.toMatch(/[^\n\P{C}]/u);
      expect(text).toContain("é 日本");
      expect(JSON.parse(text)).toEqual(value);
    }
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
