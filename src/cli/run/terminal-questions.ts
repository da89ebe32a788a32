/** What a person at the terminal is asked while the agent works: permissions, and what servers want to know. One at a time. */
import type { AgentOptions } from "../../agent/agent-options.ts";
import { ToolcribError } from "../../model/errors.ts";
import { isJsonObject } from "../../model/json.ts";
import type { ElicitationCallback } from "../../model/session.ts";
import { askOnTerminal } from "../ask-on-terminal.ts";
import type { Invocation } from "../command.ts";
import { readLine } from "../read-line.ts";
import { type Asker, fillForm, visitPage } from "./terminal-form.ts";

export interface TerminalQuestions {
  readonly onAsk: NonNullable<AgentOptions["onAsk"]>;
  readonly onSampling: NonNullable<AgentOptions["onSampling"]>;
  readonly onElicit: ElicitationCallback;
}

interface Stage {
  /** The terminal belongs to the question in between. */
  readonly before: () => void;
  readonly after: () => void;
  /** Ctrl-C instead of an answer. */
  readonly interrupt: () => void;
}

/** Undefined where nobody can be asked. */
export function terminalQuestions(invocation: Invocation, stage: Stage): TerminalQuestions | undefined {
  const permission = askOnTerminal(invocation);
  if (permission === undefined) return undefined;
  const { out, stdin } = invocation;
  let last: Promise<unknown> = Promise.resolve();
  const inTurn = <Answer>(signal: AbortSignal, question: () => Promise<Answer> | Answer): Promise<Answer> => {
    const answer = last.then(async () => {
      signal.throwIfAborted();
      stage.before();
      try {
        return await question();
      } catch (error) {
        const isKey = error instanceof ToolcribError && error.code === "cancelled" && !signal.aborted;
        if (isKey) stage.interrupt();
        throw error;
      } finally {
        stage.after();
      }
    });
    last = answer.catch(() => {});
    return answer;
  };
  const askerOf = (signal: AbortSignal): Asker => ({
    line: async (prompt) => (await readLine(stdin, { prompt, prompts: out.prompts, signal })).trim(),
    note: (text) => out.note(text),
  });

  return {
    onAsk: (request, { signal }) => inTurn(signal, () => permission(request, signal)),
    onSampling: ({ server, params: { maxTokens } }, signal) =>
      inTurn(signal, async () => {
        const size = typeof maxTokens === "number" ? ` for up to ${maxTokens} tokens` : "";
        out.note(`The server "${server}" wants to use the model${size}.`);
        return /^y(es)?$/i.test(await askerOf(signal).line("Allow it? [y]es, [N]o: "));
      }),
    onElicit: ({ message, requestedSchema, url }, { server, signal }) =>
      inTurn(signal, () => {
        out.note(`The server "${server}" asks: ${typeof message === "string" ? message : ""}`);
        if (typeof url === "string") return visitPage(url, askerOf(signal));
        return fillForm(isJsonObject(requestedSchema) ? requestedSchema : {}, askerOf(signal));
      }),
  };
}
