import { describe, expect, it } from "vitest";
import { Redactor } from "../../../src/secrets/redactor.ts";
import { ServerLog, StderrTail } from "../../../src/upstream/stdio/server-log.ts";

const same = (text: string): string => text;

describe("StderrTail", () => {
  it("[sound-03a] masks before it cuts, by length and by lines: half a secret is not recognised", () => {
    const redactor = new Redactor();
    const token = "tok-4f9a7c21e8b35d60";
    const key = Array.from({ length: 27 }, (_, line) => `${line}KeyLineOf27${"a".repeat(20)}${line}`).join("\n");
    for (const secret of [token, key]) redactor.addCredential(secret);
    for (let kept = 1; kept < token.length; kept += 1) {
      const tail = new StderrTail(redactor.mask);
      tail.push(Buffer.from(`${"x ".repeat(100_000)}${token}${"-y".repeat(4096).slice(0, 8192 - kept)}`));
      for (let at = 0; at + 8 <= token.length; at += 1) expect(tail.text()).not.toContain(token.slice(at, at + 8));
    }
    const tail = new StderrTail(redactor.mask);
    tail.push(Buffer.from(`it begins\n${key}\nand ends`));
    expect(tail.text(3)).not.toContain("KeyLine");
    expect(tail.text(3)).toContain("and ends");
  });

  it("keeps the last twenty lines of a flood", () => {
    const tail = new StderrTail(same);
    for (let n = 0; n < 100_000; n++) tail.push(Buffer.from(`line ${n}\n`));
    const lines = tail.text().split("\n");
    expect(lines).toHaveLength(20);
    expect(lines.at(0)).toBe("line 99980");
    expect(lines.at(-1)).toBe("line 99999");
    expect(tail.text(2)).toBe("line 99998\nline 99999");
  });

  it("keeps at most 8 KiB of one endless line and drops a line that lost its beginning", () => {
    const tail = new StderrTail(same);
    tail.push(Buffer.from("x".repeat(1_000_000)));
    expect(tail.text()).toHaveLength(8 * 1024);
    tail.push(Buffer.from("\nlast words"));
    expect(tail.text()).toBe("last words");
  });

  it("joins a character that two writes cut in half, and removes what would act on a terminal", () => {
    const tail = new StderrTail(same);
    const bytes = Buffer.from("é \u001b[31mred\u001b[0m \u001b]0;title\u0007 bell\u0007\r\n\n");
    tail.push(bytes.subarray(0, 1));
    tail.push(bytes.subarray(1));
    expect(tail.text()).toBe("é red  bell");
  });
});

describe("ServerLog", () => {
  it("[joy-06c] has the time and level of each line, over chunks that cut lines anywhere", () => {
    let now = 0;
    const log = new ServerLog(same, () => (now += 1000));
    log.push("files", Buffer.from("2026-01-01 ERROR it "));
    log.push("files", Buffer.from("broke\n\u001b[33mwarn\u001b[0m: low\nplain\nhalf"));
    log.note("files", "critical", "the disk is full");
    expect(log.entries("files")).toEqual([
      { seq: 1, at: "1970-01-01T00:00:01.000Z", source: "stderr", level: "error", text: "2026-01-01 ERROR it broke" },
      { seq: 2, at: "1970-01-01T00:00:02.000Z", source: "stderr", level: "warning", text: "warn: low" },
      { seq: 3, at: "1970-01-01T00:00:03.000Z", source: "stderr", level: null, text: "plain" },
      { seq: 4, at: "1970-01-01T00:00:04.000Z", source: "log", level: "error", text: "the disk is full" },
    ]);
    expect(log.lines("files")).toEqual(["2026-01-01 ERROR it broke", "warn: low", "plain", "half"]);
    log.begin("files");
    log.push("files", Buffer.from("next\n"));
    expect(
      log
        .entries("files")
        .map(({ text }) => text)
        .slice(-2),
    ).toEqual(["half", "next"]);
    expect(log.entries("other")).toEqual([]);
    log.forget("files");
    expect(log.lines("files")).toEqual([]);
  });

  it("[joy-06c] stays bounded in a flood of lines, of long lines and of one endless line", () => {
    const log = new ServerLog(same);
    for (let n = 0; n < 100; n += 1)
      log.push("a", Buffer.from(Array.from({ length: 100 }, (_, k) => `${n} ${k}\n`).join("")));
    expect(log.entries("a")).toHaveLength(1000);
    expect(log.entries("a").at(-1)).toMatchObject({ seq: 10_000, text: "99 99" });
    for (let n = 0; n < 200; n += 1) log.push("a", Buffer.from(`${"x".repeat(10_000)}\n`));
    const size = log.entries("a").reduce((sum, { text }) => sum + text.length, 0);
    expect(size).toBeLessThanOrEqual(256 * 1024);
    expect(log.entries("a").at(-1)?.text).toHaveLength(4097);
    for (let n = 0; n < 100; n += 1) log.push("b", Buffer.from("y".repeat(100_000)));
    expect(log.lines("b")[0]?.length).toBe(4096);
  });

  it("[joy-06c] shows no part of a secret where a line is cut", () => {
    const redactor = new Redactor();
    redactor.add("k3y-of-the-0perator");
    const secrets = ["k3y-of-the-0perator", `ghp_${"a1B2".repeat(9)}`];
    for (const secret of secrets) {
      for (let shown = 1; shown < secret.length; shown += 1) {
        const log = new ServerLog(redactor.mask);
        log.push("a", Buffer.from(`${"x".repeat(4095 - shown)} ${secret} ${"y".repeat(100)}\n`));
        log.note("a", "info", `${"x".repeat(4095 - shown)} ${secret} ${"y".repeat(100)}`);
        // The end of a line without an end, in pieces that also cut the secret.
        log.push("b", Buffer.from(`${"x ".repeat(50_000)}${secret.slice(0, shown)}`));
        log.push("b", Buffer.from(`${secret.slice(shown)} ${"y".repeat(4095 - shown)}`));
        const before = log.lines("b").map(redactor.mask);
        log.push("b", Buffer.from("\n"));
        const texts = [...log.entries("a"), ...log.entries("b")].map(({ text }) => redactor.mask(text));
        expect(texts.map((text) => text.replaceAll(/[xy …]+/g, ""))).toEqual(Array(3).fill("[redacted]"));
        expect(before).toEqual(texts.slice(-1));
      }
    }
  });
});
