/** Questions on the terminal while the agent works: approvals, and elicitation and sampling requests of servers. One at a time. */
import type { AgentOptions } from "../../agent/agent-options.ts";
import { ToolcribError } from "../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import type { ElicitationCallback } from "../../model/source.ts";
import type { Invocation } from "../command.ts";
import { askOnTerminal, readLine } from "../terminal-input.ts";
import { coerceText, ArgumentMismatch } from "../tool-arguments.ts";

export interface TerminalQuestions {
  readonly onAsk: NonNullable<AgentOptions["onAsk"]>;
  readonly onSampling: NonNullable<AgentOptions["onSampling"]>;
  readonly onElicit: ElicitationCallback;
}

interface Stage {
  /** Called before and after each question. */
  readonly before: () => void;
  readonly after: () => void;
  /** Ctrl-C instead of an answer. */
  readonly interrupt: () => void;
}

/** Undefined without a terminal. */
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
        out.note(`The server "${server}" requests a model response${size}.`);
        return /^y(es)?$/i.test(await askerOf(signal).line("Allow this? [y]es, [N]o: "));
      }),
    onElicit: ({ message, requestedSchema, url }, { server, signal }) =>
      inTurn(signal, () => {
        out.note(`The server "${server}" asks: ${typeof message === "string" ? message : ""}`);
        if (typeof url === "string") return visitPage(url, askerOf(signal));
        return fillForm(isJsonObject(requestedSchema) ? requestedSchema : {}, askerOf(signal));
      }),
  };
}

interface Asker {
  line(prompt: string): Promise<string>;
  note(text: string): void;
}

/** The URL is never opened automatically, because a server could send any. */
export async function visitPage(url: string, asker: Asker): Promise<JsonObject> {
  asker.note(`  ${url}`);
  const typed = await asker.line("Open this URL yourself if you trust it, then press Enter; type n to decline: ");
  return { action: /^n/i.test(typed) ? "decline" : "accept" };
}

/** An empty answer omits the field, or declines the form if the field is required. */
export async function fillForm(schema: JsonObject, asker: Asker): Promise<JsonObject> {
  const fields = Object.entries(isJsonObject(schema["properties"]) ? schema["properties"] : {});
  const required: unknown[] = Array.isArray(schema["required"]) ? schema["required"] : [];
  if (fields.length === 0) {
    return { action: /^y(es)?$/i.test(await asker.line("Accept? [y]es, [N]o: ")) ? "accept" : "decline" };
  }
  const content: JsonObject = {};
  for (const [name, described] of fields) {
    const field = isJsonObject(described) ? described : {};
    const value = await fillField(labelOf(name, field, required.includes(name)), field, asker);
    if (value !== undefined) content[name] = value;
    else if (required.includes(name)) return { action: "decline" };
  }
  return { action: "accept", content };
}

/** Undefined for an empty answer without a default. */
async function fillField(label: string, field: JsonObject, asker: Asker): Promise<unknown> {
  for (;;) {
    const typed = await asker.line(`${label}: `);
    if (typed === "") return field["default"];
    try {
      return coerceText(typed, { schema: field, root: field });
    } catch (error) {
      if (!(error instanceof ArgumentMismatch)) throw error;
      asker.note(`  ${error.message}`);
    }
  }
}

function labelOf(name: string, field: JsonObject, isRequired: boolean): string {
  const title = typeof field["title"] === "string" ? field["title"] : name;
  const choices = Array.isArray(field["enum"]) ? ` (${field["enum"].map(String).join(", ")})` : "";
  const preset = field["default"] === undefined ? "" : ` [${JSON.stringify(field["default"])}]`;
  return `${title}${choices}${preset}${isRequired && preset === "" ? ", leave empty to decline" : ""}`;
}
