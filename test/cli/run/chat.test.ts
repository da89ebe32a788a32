import { describe, expect, it } from "vitest";
import { chatLines } from "../../../src/cli/run/run-command.ts";
import { readLine } from "../../../src/cli/terminal-input.ts";
import { fakeStreams } from "./fake-terminal.ts";
import { eventually } from "../../support/eventually.ts";

const never = new AbortController().signal;

describe("[agent-08c] lines of a chat", () => {
  it("come one by one from a pipe, joined by a backslash, until its end", async () => {
    const { stdin, stderr } = fakeStreams();
    const lines = chatLines(stdin, stderr);
    stdin.end("one\r\ntwo \\\nmore\nlast");
    expect([await lines.next(never), await lines.next(never), await lines.next(never)]).toEqual([
      "one",
      "two \nmore",
      "last",
    ]);
    expect(await lines.next(never)).toBeUndefined();
    lines.close();
  });

  it("end when the program does", async () => {
    const { stdin, stderr } = fakeStreams();
    const lines = chatLines(stdin, stderr);
    const ending = new AbortController();
    const next = lines.next(ending.signal);
    ending.abort();
    expect(await next).toBeUndefined();
    lines.close();
  });

  it("of a terminal can be edited and brought back; Ctrl-C gives a line up, Ctrl-D ends", async () => {
    const streams = fakeStreams({ isTTY: true });
    const { stdin, stderr, written } = streams;
    const lines = chatLines(stdin, stderr);
    const typed = async (keys: string): Promise<string | undefined> => {
      const next = lines.next(never);
      stdin.write(keys);
      return next;
    };
    expect(await typed("helo\u001b[Dl\r")).toBe("hello");
    // Questions read the terminal in between.
    const answer = readLine(stdin, { prompt: "Allow? ", prompts: stderr });
    stdin.write("yes\r");
    expect(await answer).toBe("yes");
    expect(await typed("\u001b[A again\r")).toBe("hello again");
    expect(await typed("wrong\u0003right\r")).toBe("right");
    await eventually(() => written().stderr.includes("^C"));
    expect(await typed("\u0003")).toBeUndefined();
    expect(await typed("\u0004")).toBeUndefined();
  });
});

describe("[agent-08c] a question at the terminal", () => {
  it("is cancelled by Ctrl-C, Ctrl-D and the signal", async () => {
    for (const key of ["\u0003", "\u0004"]) {
      const { stdin, stderr } = fakeStreams({ isTTY: true });
      const answer = readLine(stdin, { prompt: "? ", prompts: stderr });
      stdin.write(key);
      await expect(answer).rejects.toMatchObject({ code: "cancelled" });
    }
    const { stdin, stderr } = fakeStreams({ isTTY: true });
    await expect(readLine(stdin, { prompt: "? ", prompts: stderr, signal: AbortSignal.abort() })).rejects.toMatchObject(
      { code: "cancelled" },
    );
  });
});
