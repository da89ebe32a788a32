/** Questions on the terminal: one line, a secret, and the approval of a call. */
import { terminalLine } from "../base/visible-text.ts";
import { showHidden } from "../base/visible-text.ts";
import type { AskAnswer, AskCallback, AskRequest } from "../model/decision.ts";
import { ToolcribError } from "../model/errors.ts";
import { MAX_SECRET_BYTES, withoutFinalNewline } from "../secrets/provider.ts";
import type { Invocation } from "./command.ts";
import type { Sink } from "./output.ts";
import { readBytes } from "../base/read-bytes.ts";

const APPROVAL_ANSWERS: Readonly<Record<string, AskAnswer>> = {
  o: "once",
  once: "once",
  y: "once",
  yes: "once",
  s: "session",
  session: "session",
  a: "always",
  always: "always",
  v: "always-values",
  values: "always-values",
  c: "always-call",
  call: "always-call",
  n: "no",
  no: "no",
  "": "no",
};

const MAX_ARGUMENTS_LENGTH = 2000;

interface ApprovalPromptOptions {
  /** Of the arguments, in characters. */
  readonly longest?: number;
}

/** Undefined if stdin is not a terminal. */
export function askOnTerminal(
  { stdin, out, flags }: Invocation,
  showing: ApprovalPromptOptions = {},
): AskCallback | undefined {
  if (!stdin.isTTY) return undefined;
  // `--yes` answers in advance. It has no effect in a script without a terminal.
  if (flags.has("yes")) return () => "once";
  return async (request, signal) => {
    for (const line of describeApproval(request, showing)) out.note(line);
    for (;;) {
      const typed = await readLine(stdin, { prompt: approvalPrompt(request), prompts: out.prompts, signal });
      const answer = APPROVAL_ANSWERS[typed.trim().toLowerCase()];
      const isOffered = !answer?.startsWith("always-") || Object.hasOwn(request.lasting ?? {}, answer);
      if (answer !== undefined && isOffered) return answer;
    }
  };
}

function approvalPrompt({ lasting }: AskRequest): string {
  const values = lasting?.["always-values"] === undefined ? "" : ", always with these [v]alues";
  const call = lasting?.["always-call"] === undefined ? "" : ", always exactly this [c]all";
  return `Allow this call? [o]nce, [s]ession${call}${values}, [a]lways, [N]o: `;
}

export function describeApproval(
  { reason, arguments: args, origin }: AskRequest,
  { longest = MAX_ARGUMENTS_LENGTH }: ApprovalPromptOptions = {},
): string[] {
  const whole = showHidden(JSON.stringify(args));
  const more = whole.length > longest ? ` … and ${whole.length - longest} more characters` : "";
  const shown = whole.slice(0, longest) + more;
  return [reason, `  server: ${origin.source}`, `  arguments: ${shown}`];
}

interface LineOptions {
  readonly prompt: string;
  readonly prompts: Sink;
  readonly signal?: AbortSignal | undefined;
}

/** Rejects with `cancelled` for Ctrl-C, Ctrl-D and an aborted signal. */
export function readLine(stdin: NodeJS.ReadStream, { prompt, prompts, signal }: LineOptions): Promise<string> {
  return new Promise((resolve, reject) => {
    const { createInterface } = process.getBuiltinModule("node:readline");
    const terminal = createInterface({ input: stdin, output: prompts });
    const stop = (): void => terminal.close();
    terminal.once("line", (line) => {
      resolve(line);
      terminal.close();
    });
    terminal.once("SIGINT", stop);
    terminal.once("close", () => {
      signal?.removeEventListener("abort", stop);
      // No effect after an answer.
      reject(new ToolcribError("cancelled", "The question was not answered."));
    });
    signal?.addEventListener("abort", stop, { once: true });
    if (signal?.aborted === true) return terminal.close();
    // Some prompts contain text from servers.
    terminal.setPrompt(terminalLine(prompt));
    terminal.prompt();
  });
}

const CTRL_C = "\u0003";
const CTRL_D = "\u0004";
const CTRL_U = "\u0015";
const BACKSPACES = new Set(["\u007f", "\b"]);

/** Asks for a secret without showing it, or reads it from a pipe. Never from the arguments: other users can see those. */
export async function readSecret(
  stdin: NodeJS.ReadStream,
  options: { readonly fromPipe: boolean; readonly prompt: string; readonly prompts: Sink },
): Promise<string> {
  if (!options.fromPipe && !stdin.isTTY) {
    throw new ToolcribError("invalid_arguments", "The value cannot be asked for: stdin is not a terminal.", {
      hint: "Pass it on stdin with --stdin.",
    });
  }
  const value = options.fromPipe ? await readPipe(stdin) : await readHidden(stdin, options.prompts, options.prompt);
  if (value === "") throw new ToolcribError("invalid_arguments", "The value is empty. Nothing was stored.");
  return value;
}

async function readPipe(stdin: NodeJS.ReadStream): Promise<string> {
  const tooLarge = (): Error =>
    new ToolcribError("invalid_arguments", `The value is larger than ${MAX_SECRET_BYTES / 1024} KiB.`);
  return withoutFinalNewline((await readBytes(stdin, MAX_SECRET_BYTES, tooLarge)).toString("utf8"));
}

/** Echo is off while the value is typed; nothing is printed for a character, not even an asterisk. */
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
