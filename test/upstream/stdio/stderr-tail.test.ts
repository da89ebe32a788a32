import { describe, expect, it } from "vitest";
import { StderrTail } from "../../../src/upstream/stdio/stderr-log.ts";

describe("StderrTail", () => {
  it("keeps the last twenty lines of a flood", () => {
    const tail = new StderrTail();
    for (let n = 0; n < 100_000; n++) tail.push(Buffer.from(`line ${n}\n`));
    const lines = tail.text().split("\n");
    expect(lines).toHaveLength(20);
    expect(lines.at(0)).toBe("line 99980");
    expect(lines.at(-1)).toBe("line 99999");
    expect(tail.text(2)).toBe("line 99998\nline 99999");
  });

  it("keeps at most 8 KiB of one endless line and drops a line that lost its beginning", () => {
    const tail = new StderrTail();
    tail.push(Buffer.from("x".repeat(1_000_000)));
    expect(tail.text()).toHaveLength(8 * 1024);
    tail.push(Buffer.from("\nlast words"));
    expect(tail.text()).toBe("last words");
  });

  it("joins a character that two writes cut in half, and removes what would act on a terminal", () => {
    const tail = new StderrTail();
    const bytes = Buffer.from("é \u001b[31mred\u001b[0m \u001b]0;title\u0007 bell\u0007\r\n\n");
    tail.push(bytes.subarray(0, 1));
    tail.push(bytes.subarray(1));
    expect(tail.text()).toBe("é red  bell");
  });
});
