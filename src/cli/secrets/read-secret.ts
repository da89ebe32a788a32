/** Gets a secret from a person without showing it, or from a pipe. Never from the arguments: others can see those. */
import { ToolcribError } from "../../model/errors.ts";
import { terminalLine } from "../../model/visible-text.ts";
import { LARGEST_SECRET, withoutFinalNewline } from "../../secrets/secret-text.ts";
import type { Sink } from "../output.ts";

const CTRL_C = "\u0003";
const CTRL_D = "\u0004";
const CTRL_U = "\u0015";
const BACKSPACES = new Set(["\u007f", "\b"]);

export async function readSecret(
  stdin: NodeJS.ReadStream,
  options: { readonly fromPipe: boolean; readonly prompt: string; readonly prompts: Sink },
): Promise<string> {
  if (!options.fromPipe && !stdin.isTTY) {
    throw new ToolcribError("invalid_arguments", "There is no terminal to ask for the value on.", {
      hint: "Give it on stdin with --stdin.",
    });
  }
  const value = options.fromPipe ? await readPipe(stdin) : await readHidden(stdin, options.prompts, options.prompt);
  if (value === "") throw new ToolcribError("invalid_arguments", "The value is empty; nothing was stored.");
  return value;
}

async function readPipe(stdin: NodeJS.ReadStream): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stdin) {
    const piece = Buffer.from(chunk as Buffer | string);
    bytes += piece.length;
    if (bytes > LARGEST_SECRET) {
      throw new ToolcribError("invalid_arguments", `The value is larger than ${LARGEST_SECRET / 1024} KiB.`);
    }
    chunks.push(piece);
  }
  return withoutFinalNewline(Buffer.concat(chunks).toString("utf8"));
}

/** The terminal's own echo is off while it is typed; nothing is printed for a character, not even a star. */
function readHidden(stdin: NodeJS.ReadStream, prompts: Sink, prompt: string): Promise<string> {
  prompts.write(terminalLine(prompt));
  stdin.setRawMode(true);
  stdin.setEncoding("utf8");
  stdin.resume();
  return new Promise<string>((resolve, reject) => {
    let typed: string[] = [];
    const finish = (settle: () => void): void => {
      stdin.off("data", take).off("end", end);
      stdin.setRawMode(false);
      stdin.pause();
      prompts.write("\n");
      settle();
    };
    const end = (): void => finish(() => resolve(typed.join("")));
    const take = (chunk: string): void => {
      for (const char of chunk) {
        if (char === CTRL_C) return finish(() => reject(new ToolcribError("cancelled", "Nothing was stored.")));
        if (char === "\r" || char === "\n" || char === CTRL_D) return end();
        if (BACKSPACES.has(char)) typed.pop();
        else if (char === CTRL_U) typed = [];
        else typed.push(char);
      }
    };
    stdin.on("data", take).on("end", end);
  });
}
