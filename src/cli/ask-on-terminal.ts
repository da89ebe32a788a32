/** Asks the person at the terminal whether a held-back call may go on. */
import { showHidden } from "../guard/detect/show-hidden.ts";
import type { AskAnswer, AskCallback, AskRequest } from "../model/ask.ts";
import type { Invocation } from "./command.ts";
import { readLine } from "./read-line.ts";

const ANSWERS: Readonly<Record<string, AskAnswer>> = {
  o: "once",
  once: "once",
  y: "once",
  yes: "once",
  s: "session",
  session: "session",
  a: "always",
  always: "always",
  n: "no",
  no: "no",
  "": "no",
};

const LONGEST = 2000;

interface Showing {
  /** Of the arguments, in characters. */
  readonly longest?: number;
}

/** Undefined where nobody can be asked: stdin is not a terminal. */
export function askOnTerminal({ stdin, out, flags }: Invocation, showing: Showing = {}): AskCallback | undefined {
  if (!stdin.isTTY) return undefined;
  // `--yes` is the person's answer, given beforehand; it does not reach a script that has no terminal.
  if (flags.has("yes")) return () => "once";
  return async (request, signal) => {
    for (const line of describe(request, showing)) out.note(line);
    for (;;) {
      const prompt = "Allow it? [o]nce, [s]ession, [a]lways, [N]o: ";
      const typed = await readLine(stdin, { prompt, prompts: out.prompts, signal });
      const answer = ANSWERS[typed.trim().toLowerCase()];
      if (answer !== undefined) return answer;
    }
  };
}

/** What is about to be allowed, for a person. */
export function describe(
  { reason, arguments: args, origin }: AskRequest,
  { longest = LONGEST }: Showing = {},
): string[] {
  const whole = showHidden(JSON.stringify(args));
  const more = whole.length > longest ? ` … and ${whole.length - longest} more characters` : "";
  const shown = whole.slice(0, longest) + more;
  return [reason, `  server: ${origin.source}`, `  arguments: ${shown}`];
}
