import { Writable } from "node:stream";
import { describe, expect, it } from "vitest";
import { LineWriter } from "../../../src/upstream/stdio/line-framing.ts";

function setUp() {
  const writes: string[] = [];
  const state: { error: Error | null } = { error: null };
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      if (state.error === null) writes.push(chunk.toString());
      done(state.error);
    },
  });
  stream.on("error", () => {});
  return { state, writes, writer: new LineWriter(stream, (cause) => new Error(`not sent: ${cause.message}`)) };
}

describe("LineWriter", () => {
  it("writes a single line at once", () => {
    const { writer, writes } = setUp();
    void writer.write("a\n", false);
    expect(writes).toEqual(["a\n"]);
  });

  it("[speed-07a] writes the lines of a turn together, in order", async () => {
    const { writer, writes } = setUp();
    const all = ["a\n", "b\n", "c\n"].map((line) => writer.write(line, true));
    expect(writes).toEqual([]);
    await Promise.all(all);
    expect(writes).toEqual(["a\nb\nc\n"]);
    await writer.write("d\n", false);
    expect(writes.at(-1)).toBe("d\n");
  });

  it("keeps lines in order when a large one comes between", async () => {
    const { writer, writes } = setUp();
    const large = `${"x".repeat(10_000)}\n`;
    await Promise.all([..."ab", large, ..."cd"].map((line) => writer.write(line, true)));
    expect(writes.join("")).toBe(`ab${large}cd`);
    expect(writes.filter((each) => each.includes("x"))).toEqual([large]);
  });

  it("leaves nothing behind when flushed", async () => {
    const { writer, writes } = setUp();
    void writer.write("a\n", true);
    const last = writer.write("b\n", true);
    writer.flush();
    expect(writes).toEqual(["a\nb\n"]);
    await last;
  });

  it("rejects every line of a write that failed", async () => {
    const { writer, state } = setUp();
    await writer.write("a\n", true);
    state.error = new Error("EPIPE");
    const lines = [writer.write("b\n", true), writer.write("c\n", true)];
    for (const line of lines) await expect(line).rejects.toThrow(/^not sent: /);
  });
});
