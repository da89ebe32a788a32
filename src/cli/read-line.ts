/** One line typed by a person at the terminal. */
import { createInterface } from "node:readline";
import { ToolcribError } from "../model/errors.ts";
import { terminalLine } from "../model/visible-text.ts";
import type { Sink } from "./output.ts";

interface LineOptions {
  readonly prompt: string;
  readonly prompts: Sink;
  readonly signal?: AbortSignal | undefined;
}

/** Rejects with `cancelled` for Ctrl-C, Ctrl-D and an aborted signal. */
export function readLine(stdin: NodeJS.ReadStream, { prompt, prompts, signal }: LineOptions): Promise<string> {
  return new Promise((resolve, reject) => {
    const terminal = createInterface({ input: stdin, output: prompts });
    const stop = (): void => terminal.close();
    terminal.once("line", (line) => {
      resolve(line);
      terminal.close();
    });
    terminal.once("SIGINT", stop);
    terminal.once("close", () => {
      signal?.removeEventListener("abort", stop);
      // Without effect after an answer.
      reject(new ToolcribError("cancelled", "The question was not answered."));
    });
    signal?.addEventListener("abort", stop, { once: true });
    if (signal?.aborted === true) return terminal.close();
    // Servers word some of them.
    terminal.setPrompt(terminalLine(prompt));
    terminal.prompt();
  });
}
