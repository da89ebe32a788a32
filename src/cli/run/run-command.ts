/** The built-in agent at a terminal or in a script: one prompt, or a chat. */
import { createInterface, type Interface } from "node:readline";
import type { ChatModel } from "../../agent/model/chat-model.ts";
import { asToolcribError, ToolcribError } from "../../model/errors.ts";
import type { ContentBlock } from "../../model/protocol.ts";
import { exitCodeOf, type Invocation } from "../command.ts";
import { loadCommandConfig } from "../command-config.ts";
import { awaitServers, openAgentHub, RunAgent } from "./run-agent.ts";
import { chosenModel, type RunOptions, runOptions, modeOf, MODES, namedModels } from "./run-options.ts";
import { Interrupts, runTurn, turnView, type TurnView } from "./show-turn.ts";
import { terminalQuestions } from "./terminal-questions.ts";
import { modelId } from "../../agent/model/open-model.ts";
import { nearMatches } from "../../base/near-matches.ts";
import type { Hub } from "../../hub/hub.ts";
import type { StoredConversation } from "../../store/store.ts";
import type { Output, Sink } from "../output.ts";
import { type Column, firstLine } from "../table.ts";

export async function run(invocation: Invocation): Promise<number> {
  const { out, flags } = invocation;
  const options = await runOptions(invocation);
  const interrupts = new Interrupts({ keepsRunning: options.isChat, timeoutMs: flags.number("timeout") });
  try {
    return await withAgent(invocation, options, interrupts);
  } catch (thrown) {
    // An error after a signal or timeout is a consequence of it.
    const error = interrupts.exitCode === undefined ? asToolcribError(thrown) : interrupts.timedOut;
    if (!out.json && error !== undefined) throw error;
    // Every line of the output is a JSON object.
    if (error !== undefined) out.record({ error: out.redactor.maskAll(error.toObject()) });
    return interrupts.exitCode ?? exitCodeOf(error?.code ?? "internal");
  } finally {
    interrupts.stop();
  }
}

async function withAgent(invocation: Invocation, options: RunOptions, interrupts: Interrupts): Promise<number> {
  const { out, cwd, env } = invocation;
  const config = await loadCommandConfig(invocation);
  const model = chosenModel(config.config.agent, options.model);
  const view = turnView(out, options);
  const questions = terminalQuestions(invocation, {
    before: () => view.pause(),
    after: () => view.resume(),
    interrupt: () => interrupts.interrupt(),
  });
  const hub = await openAgentHub(invocation, config);
  let runAgent: RunAgent | undefined;
  try {
    runAgent = await RunAgent.open({ ...options, hub, cwd, env, model, questions }, options.resume);
    // Fails early if the API key is missing.
    refuseUnseen(options.prompt, await runAgent.agent.model());
    await awaitServers(hub, invocation, interrupts.ending);
    if (options.isChat) {
      const exitCode = await runChat({ invocation, hub, runAgent, interrupts, view }, options.prompt);
      return interrupts.exitCode ?? exitCode;
    }
    const exitCode = await runTurn(runAgent.agent, options.prompt ?? [], { view, out, signal: interrupts.beginTurn() });
    // The loop only knows that it was cancelled, not that the time was up.
    if (interrupts.timedOut !== undefined && exitCode === 1 && !out.json) out.error(interrupts.timedOut.toObject());
    if (options.verbose) out.note(`conversation: ${runAgent.agent.conversation.id}`);
    return interrupts.exitCode ?? exitCode;
  } finally {
    await runAgent?.close();
    await hub.close();
  }
}

/** Otherwise the model would only be told that there is an image. */
function refuseUnseen(prompt: readonly ContentBlock[] | undefined, { id, images }: ChatModel): void {
  if (images || prompt?.some(({ type }) => type === "image") !== true) return;
  throw new ToolcribError("invalid_arguments", `${id} does not support images.`, {
    hint: 'Choose another one with --model. If it does support images, define it in the config as an endpoint with "images": true.',
  });
}

// `toolcrib run -i`: a chat with the agent, in one or more conversations.

/** Resolves with the exit code: that of the last turn if prompts come from a pipe, otherwise 0. */
async function runChat(parts: ChatParts, first: readonly ContentBlock[] | undefined): Promise<number> {
  const { invocation, interrupts, runAgent, view } = parts;
  const { stdin, out } = invocation;
  const lines = chatLines(stdin, out.prompts);
  const turn = async (prompt: string | readonly ContentBlock[]): Promise<number> => {
    try {
      return await runTurn(runAgent.agent, prompt, { view, out, signal: interrupts.beginTurn() });
    } finally {
      interrupts.endTurn();
    }
  };
  let exitCode = 0;
  try {
    if (stdin.isTTY) {
      const { id } = await runAgent.agent.model();
      out.note(`${id}, mode ${runAgent.agent.mode}. Type /help for commands, Ctrl-D to quit.`);
    }
    if (first !== undefined) exitCode = await turn(first);
    while (!interrupts.ending.aborted) {
      const line = (await lines.next(interrupts.ending))?.trim();
      if (line === undefined) break;
      if (line === "") continue;
      const [, name = "", rest = ""] = /^\/(\S+)\s*([^]*)$/.exec(line) ?? [];
      const command = CHAT_COMMANDS[name];
      const unknown = command === undefined ? unknownCommand(parts, name, rest) : undefined;
      if (unknown !== undefined) reportError(out, unknown);
      else if (command === undefined) exitCode = await turn(line);
      else if ((await runCommand(command, parts, rest)) === "exit") break;
    }
  } finally {
    lines.close();
  }
  return stdin.isTTY ? 0 : exitCode;
}

/** Reports an error of the command; the chat continues. */
async function runCommand(command: ChatCommand, parts: ChatParts, rest: string): Promise<"exit" | void> {
  try {
    return await command.run(parts, rest);
  } catch (thrown) {
    reportError(parts.invocation.out, asToolcribError(thrown));
  }
}

function reportError(out: Output, { message, hint }: ToolcribError): void {
  out.labelled("red", "error:", hint === undefined ? message : `${message}\n  ${hint}`);
}

interface ChatParts {
  readonly invocation: Invocation;
  readonly hub: Hub;
  readonly runAgent: RunAgent;
  readonly interrupts: Interrupts;
  readonly view: TurnView;
}

interface ChatCommand {
  readonly usage: string;
  readonly summary: string;
  readonly run: (parts: ChatParts, rest: string) => Promise<"exit" | void>;
}

const SHOWN_CONVERSATIONS = 20;

interface Entry {
  readonly name: string;
  readonly text: string;
}

const ENTRY_COLUMNS: readonly Column<Entry>[] = [
  { title: "NAME", cell: ({ name }) => name },
  { title: "DESCRIPTION", cell: ({ text }) => firstLine(text), shrink: true },
];

const CONVERSATION_COLUMNS: readonly Column<StoredConversation>[] = [
  { title: "ID", cell: ({ id }) => id },
  { title: "LAST USED", cell: ({ updatedAt }) => updatedAt },
  { title: "TITLE", cell: ({ title }) => firstLine(title ?? ""), shrink: true },
];

/** Without a prototype, so that `/constructor` is not a command. */
const CHAT_COMMANDS: Readonly<Record<string, ChatCommand | undefined>> = Object.assign(Object.create(null) as object, {
  help: {
    usage: "/help",
    summary: "show this list",
    async run(parts) {
      const own = Object.values(CHAT_COMMANDS).flatMap((command) =>
        command === undefined ? [] : [{ name: command.usage, text: command.summary }],
      );
      listEntries(parts, [...own, ...callableEntries(parts)], "");
    },
  },
  tools: {
    usage: "/tools",
    summary: "list the tools of the agent",
    async run(parts) {
      const { tools } = parts.hub.view(parts.runAgent.agent.session);
      const entries = tools.map(({ name, definition }) => ({ name, text: definition.description ?? "" }));
      listEntries(parts, entries, "No tools are available.");
    },
  },
  skills: {
    usage: "/skills",
    summary: "list the skills and server prompts that can be called by name",
    run: async (parts) => listEntries(parts, callableEntries(parts), "No skills or prompts are available."),
  },
  model: {
    usage: "/model [id]",
    summary: "list the models, or switch to another one",
    async run(parts, rest) {
      const { agent } = parts.hub.config.config;
      if (rest !== "") await parts.runAgent.setModel(chosenModel(agent, rest));
      const now = (await parts.runAgent.agent.model()).id;
      const ids = new Set([now, ...namedModels(agent).map(modelId)]);
      for (const id of ids) say(parts, id === now ? `${id} (current)` : id);
    },
  },
  mode: {
    usage: "/mode [mode]",
    summary: `show or change the mode: ${MODES.join(", ")}`,
    async run(parts, rest) {
      if (rest !== "") parts.runAgent.setMode(modeOf(rest));
      say(parts, parts.runAgent.agent.mode);
    },
  },
  clear: {
    usage: "/clear",
    summary: "start a new conversation",
    async run(parts) {
      await parts.runAgent.clear();
      say(parts, "Started a new conversation.");
    },
  },
  sessions: {
    usage: "/sessions",
    summary: "list the conversations of this folder",
    async run(parts) {
      const recent = await parts.runAgent.recent(SHOWN_CONVERSATIONS);
      showRows(parts, CONVERSATION_COLUMNS, recent, "There are no saved conversations.");
    },
  },
  resume: {
    usage: "/resume [id]",
    summary: "continue a conversation by a prefix of its id, or the last one",
    async run(parts, rest) {
      const { title, messages } = await parts.runAgent.resume(rest === "" ? "last" : { id: rest });
      say(parts, `${title ?? "Untitled"}, ${messages.length} messages.`);
    },
  },
  exit: { usage: "/exit", summary: "quit, as Ctrl-D does", run: async () => "exit" as const },
} satisfies Record<string, ChatCommand>);

function callableEntries({ runAgent }: ChatParts): Entry[] {
  return runAgent.agent.commands().map(({ name, hint, description }) => ({
    name: `/${name}${hint === undefined ? "" : ` ${hint}`}`,
    text: description,
  }));
}

/** With --json stdout is for events. */
function say({ invocation: { out } }: ChatParts, text: string): void {
  if (out.json) out.note(text);
  else out.line(text);
}

function listEntries(parts: ChatParts, entries: readonly Entry[], nothing: string): void {
  showRows(parts, ENTRY_COLUMNS, entries, nothing);
}

function showRows<Row>(parts: ChatParts, columns: readonly Column<Row>[], rows: readonly Row[], nothing: string): void {
  const { out } = parts.invocation;
  if (rows.length === 0) say(parts, nothing);
  else if (out.json) for (const row of rows) out.note(columns.map(({ cell }) => cell(row)).join("  "));
  else out.table(columns, rows);
}

/** The error for a mistyped command; undefined for text that is meant for the model. */
function unknownCommand({ runAgent }: ChatParts, name: string, rest: string): ToolcribError | undefined {
  // With another slash it is a path.
  if (name === "" || name.includes("/")) return undefined;
  const called = runAgent.agent.commands().map((command) => command.name);
  if (called.includes(name) || name === "skill-off") return undefined;
  const near = nearMatches(name, [...Object.keys(CHAT_COMMANDS), ...called]);
  // `/tmp is full` is a sentence.
  if (rest !== "" && near.length === 0) return undefined;
  return new ToolcribError("not_found", `There is no command /${name}.`, {
    hint: near.length === 0 ? "Type /help for a list." : `Did you mean ${near.map((each) => `/${each}`).join(", ")}?`,
  });
}

interface ChatLines {
  /** Undefined at the end: Ctrl-D, Ctrl-C at an empty prompt, end of the pipe, aborted signal. */
  next(signal: AbortSignal): Promise<string | undefined>;
  close(): void;
}

const CHAT_PROMPT = "> ";
const CONTINUATION_PROMPT = "… ";

export function chatLines(stdin: NodeJS.ReadStream, prompts: Sink): ChatLines {
  const raw = stdin.isTTY ? new TypedLines(stdin, prompts) : new PipedLines(stdin);
  return {
    close: () => raw.close(),
    async next(signal) {
      const lines: string[] = [];
      for (;;) {
        const line = await raw.next(lines.length === 0 ? CHAT_PROMPT : CONTINUATION_PROMPT, signal);
        if (line === undefined) return undefined;
        if (!line.endsWith("\\")) return [...lines, line].join("\n");
        lines.push(line.slice(0, -1));
      }
    },
  };
}

/**
 * The terminal is read only while a prompt is typed: in between, questions read it, and Ctrl-C is a signal. So each line has
 * its own interface, which gets the history for the arrow keys.
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
        // Discards the line, as a shell does.
        this.#prompts.write("^C\n");
        terminal.write(null, { ctrl: true, name: "u" });
        terminal.prompt();
      });
      terminal.once("close", () => {
        signal.removeEventListener("abort", stop);
        // Output after the end starts on a new line.
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
    // Created at once, because lines that arrive before it would be lost.
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
