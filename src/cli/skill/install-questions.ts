/** The questions of an install, for a person at a terminal. */
import { createInterface } from "node:readline/promises";
import type { Ask, Question } from "../../hub/install/parameters.ts";
import { ToolcribError } from "../../model/errors.ts";
import { terminalLine } from "../../model/visible-text.ts";
import type { Invocation } from "../command.ts";
import { readSecret } from "../secrets/read-secret.ts";
import { Interrupted } from "./install-signals.ts";

/** Nobody is asked without a terminal, with `--yes`, or where a program reads the answer. */
export function canAsk({ stdin, flags, out }: Invocation): boolean {
  return stdin.isTTY && !flags.has("yes") && !out.json;
}

export function parameterQuestions(invocation: Invocation, signal: AbortSignal): Ask {
  let introduced: string | undefined;
  return async (question) => {
    const { server, parameter } = question;
    if (introduced !== server.id) {
      introduced = server.id;
      const { description } = server.server;
      invocation.out.note(terminalLine(`${server.id}${description === undefined ? "" : `: ${description}`}`));
    }
    return parameter.sensitive
      ? askSecret(invocation, question, signal)
      : askLine(invocation, promptFor(question), signal);
  };
}

/** Empty answers are asked again, unless nothing is an answer. */
async function askSecret({ stdin, out }: Invocation, question: Question, signal: AbortSignal): Promise<string> {
  const { parameter, fromEnvironment } = question;
  const about = parameter.description === undefined ? "" : `, ${parameter.description}`;
  const example = parameter.example === undefined ? "" : `, for example ${parameter.example}`;
  const own = `, empty for ${parameter.name} of your environment`;
  const optional = fromEnvironment ? own : parameter.required ? "" : ", empty for none";
  const prompt = `  ${parameter.name}${about}${example} (it is not shown${optional}): `;
  for (;;) {
    try {
      return await untilAborted(readSecret(stdin, { fromPipe: false, prompt, prompts: out.prompts }), signal);
    } catch (error) {
      if (signal.aborted) stdin.setRawMode(false).pause();
      if (signal.aborted || (error instanceof ToolcribError && error.code === "cancelled")) throw new Interrupted();
      if (!(error instanceof ToolcribError) || error.code !== "invalid_arguments") throw error;
      if (!parameter.required || fromEnvironment) return "";
    }
  }
}

async function untilAborted<T>(answer: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const stop = (): void => aborted.reject(new Interrupted());
  signal.addEventListener("abort", stop, { once: true });
  try {
    return await Promise.race([answer, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

function promptFor({ parameter, offered, fromEnvironment }: Question): string {
  const { name, description, required, example } = parameter;
  const parts = [
    ...(description === undefined ? [] : [description]),
    ...(example === undefined ? [] : [`for example ${example}`]),
    ...(offered !== undefined || required ? [] : ["empty for none"]),
    ...(fromEnvironment ? ["offered is that of your environment"] : []),
  ];
  const about = parts.length === 0 ? "" : ` (${parts.join("; ")})`;
  return `  ${name}${about}${offered === undefined ? "" : ` [${offered}]`}: `;
}

export async function confirm(invocation: Invocation, question: string, signal: AbortSignal): Promise<boolean> {
  return /^y(?:es)?$/i.test(await askLine(invocation, `${question} [y/N] `, signal));
}

async function askLine({ stdin, out }: Invocation, prompt: string, signal: AbortSignal): Promise<string> {
  const terminal = createInterface({ input: stdin, output: out.prompts });
  const ended = new AbortController();
  // The end of the input is an answer too.
  terminal.once("close", () => ended.abort());
  let isInterrupted = false;
  terminal.once("SIGINT", () => {
    isInterrupted = true;
    terminal.close();
  });
  try {
    return (await terminal.question(terminalLine(prompt), { signal: AbortSignal.any([signal, ended.signal]) })).trim();
  } catch (error) {
    if (isInterrupted || signal.aborted) throw new Interrupted();
    if (!ended.signal.aborted) throw error;
    throw new ToolcribError("cancelled", "Nothing was installed.");
  } finally {
    terminal.close();
  }
}
