/** Prompts as a person types them, or one for each line of a pipe. A line that ends in a backslash goes on in the next. */
import { createInterface, type Interface } from "node:readline";
import type { Sink } from "../output.ts";

export interface ChatLines {
  /** Undefined at the end: Ctrl-D, Ctrl-C at an empty prompt, end of the pipe, aborted signal. */
  next(signal: AbortSignal): Promise<string | undefined>;
  close(): void;
}

const PROMPT = "> ";
const MORE = "… ";

export function chatLines(stdin: NodeJS.ReadStream, prompts: Sink): ChatLines {
  const raw = stdin.isTTY ? new TypedLines(stdin, prompts) : new PipedLines(stdin);
  return {
    close: () => raw.close(),
    async next(signal) {
      const lines: string[] = [];
      for (;;) {
        const line = await raw.next(lines.length === 0 ? PROMPT : MORE, signal);
        if (line === undefined) return undefined;
        if (!line.endsWith("\\")) return [...lines, line].join("\n");
        lines.push(line.slice(0, -1));
      }
    },
  };
}

/**
 * The terminal is read only while a prompt is typed: in between, questions read it, and Ctrl-C is a signal. So each line has
 * its own interface, and what was typed before is handed on for the arrow keys.
 */
class TypedLines {
  readonly #stdin: NodeJS.ReadStream;
  readonly #prompts: Sink;
  #history: string[] = [];

  constructor(stdin: NodeJS.ReadStream, prompts: Sink) {
    this.#stdin = stdin;
    this.#prompts = prompts;
  }

  next(prompt: string, signal: AbortSignal): Promise<string | undefined> {
    return new Promise((resolve) => {
      const terminal = createInterface({ input: this.#stdin, output: this.#prompts, history: this.#history });
      const stop = (): void => terminal.close();
      terminal.on("history", (history) => (this.#history = [...history]));
      let isTyped = false;
      terminal.once("line", (line) => {
        isTyped = true;
        resolve(line);
        terminal.close();
      });
      terminal.on("SIGINT", () => {
        if (terminal.line === "") return terminal.close();
        // As a shell does: the line is given up.
        this.#prompts.write("^C\n");
        terminal.write(null, { ctrl: true, name: "u" });
        terminal.prompt();
      });
      terminal.once("close", () => {
        signal.removeEventListener("abort", stop);
        // What comes after the end does not stand behind the prompt.
        if (!isTyped) this.#prompts.write("\n");
        resolve(undefined);
      });
      signal.addEventListener("abort", stop, { once: true });
      if (signal.aborted) return terminal.close();
      terminal.setPrompt(prompt);
      terminal.prompt();
    });
  }

  close(): void {}
}

class PipedLines {
  readonly #reader: Interface;
  readonly #lines: AsyncIterator<string>;

  constructor(stdin: NodeJS.ReadStream) {
    this.#reader = createInterface({ input: stdin, crlfDelay: Infinity });
    // Taken at once: lines that come before somebody asks for them would be lost.
    this.#lines = this.#reader[Symbol.asyncIterator]();
  }

  async next(_prompt: string, signal: AbortSignal): Promise<string | undefined> {
    const aborted = Promise.withResolvers<undefined>();
    const stop = (): void => aborted.resolve(undefined);
    signal.addEventListener("abort", stop, { once: true });
    if (signal.aborted) stop();
    try {
      const line = await Promise.race([this.#lines.next(), aborted.promise]);
      return line === undefined || line.done === true ? undefined : line.value;
    } finally {
      signal.removeEventListener("abort", stop);
    }
  }

  close(): void {
    this.#reader.close();
  }
}
