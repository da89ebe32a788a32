/** Asks the person at the terminal whether a held-back call may go on. */
import { createInterface } from "node:readline/promises";
import { showHidden } from "../guard/detect/show-hidden.ts";
import type { AskAnswer, AskCallback, AskRequest } from "../model/ask.ts";
import type { Invocation } from "./command.ts";

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

/** Undefined where nobody can be asked: stdin is not a terminal. */
export function askOnTerminal({ stdin, out, flags }: Invocation): AskCallback | undefined {
  if (!stdin.isTTY) return undefined;
  // `--yes` is the person's answer, given beforehand; it does not reach a script that has no terminal.
  if (flags.has("yes")) return () => "once";
  return async (request, signal) => {
    const terminal = createInterface({ input: stdin, output: process.stderr });
    try {
      for (const line of describe(request)) out.note(line);
      for (;;) {
        const typed = await terminal.question("Allow it? [o]nce, [s]ession, [a]lways, [N]o: ", { signal });
        const answer = ANSWERS[typed.trim().toLowerCase()];
        if (answer !== undefined) return answer;
      }
    } finally {
      terminal.close();
    }
  };
}

function describe({ reason, arguments: args, origin }: AskRequest): string[] {
  const whole = showHidden(JSON.stringify(args));
  const more = whole.length > LONGEST ? ` … and ${whole.length - LONGEST} more characters` : "";
  const shown = whole.slice(0, LONGEST) + more;
  return [reason, `  server: ${origin.source}`, `  arguments: ${shown}`];
}
