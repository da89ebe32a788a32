/** The agent behind `createAgent`: its session, model and conversation, and the one run under way. */
import { randomUUID } from "node:crypto";
import { systemClock } from "../model/clock.ts";
import { describeBlock } from "../model/content.ts";
import { asToolcribError, ToolcribError } from "../model/errors.ts";
import type { ModelSetting } from "../model/agent-config.ts";
import { isJsonObject } from "../model/json.ts";
import type { ContentBlock } from "../model/protocol.ts";
import type { Session } from "../sessions/session.ts";
import type { Agent, AgentMode, AgentOptions, RunOptions, SlashCommand } from "./agent-options.ts";
import type { ChosenModel } from "./chosen-model.ts";
import type { Conversation } from "./conversation/conversation.ts";
import type { AgentEvent, Tokens } from "./events.ts";
import { EventQueue } from "./loop/event-queue.ts";
import { lateServers } from "./loop/late-servers.ts";
import { Notices } from "./loop/notices.ts";
import { runSignal } from "./loop/run-signal.ts";
import { type Ending, Turn } from "./loop/turn.ts";
import { abortError, untilAborted } from "./loop/until-aborted.ts";
import type { UserMessage } from "./messages.ts";
import type { ChatModel } from "./model/chat-model.ts";
import { clearMode, setMode } from "./modes.ts";
import { narrowToPatterns } from "./tools/agent-rules.ts";
import { addBuiltInTools, removeBuiltInTools } from "./tools/built-in.ts";
import { runSlashCommand, slashCommands, type SlashResult } from "./tools/slash-commands.ts";

interface BuiltInAgentOptions extends Omit<AgentOptions, "model" | "session" | "conversation"> {
  readonly model: ChosenModel;
  readonly session: Session;
  /** Then it is closed with the agent. */
  readonly ownsSession: boolean;
  readonly mounted?: Promise<void> | undefined;
  readonly conversation: Conversation;
}

type EndEvent = Extract<AgentEvent, { type: "end" }>;
type Emit = (event: AgentEvent) => void;

/** Sessions whose rules and tools an agent sets. */
const taken = new WeakSet<Session>();

const NO_TOKENS: Tokens = { input: 0, output: 0 };
const MODES: readonly AgentMode[] = ["ask", "auto", "read-only"];

export class BuiltInAgent implements Agent {
  readonly session: Session;
  readonly conversation: Conversation;
  readonly #options: BuiltInAgentOptions;
  readonly #notices: Notices;
  #mode: AgentMode;
  #emit: Emit | undefined;
  #running: { readonly abort: () => void; readonly ended: Promise<unknown> } | undefined;
  #closed = false;
  #isSeated = true;

  constructor(options: BuiltInAgentOptions) {
    if (taken.has(options.session)) throw sessionTaken();
    taken.add(options.session);
    this.#options = options;
    this.session = options.session;
    this.conversation = options.conversation;
    const kept = MODES.find((mode) => mode === options.conversation.facts["mode"]);
    this.#mode = options.mode ?? kept ?? "auto";
    this.#notices = new Notices(this.session.own);
    setMode(this.session, this.#mode);
  }

  get mode(): AgentMode {
    return this.#mode;
  }

  model(): Promise<ChatModel> {
    return this.#options.model.open();
  }

  setModel(model: ModelSetting | ChatModel): void {
    this.#options.model.choose(model);
  }

  setMode(mode: AgentMode): void {
    this.#mode = mode;
    setMode(this.session, mode);
  }

  commands(): readonly SlashCommand[] {
    return slashCommands(this.#options.hub, this.session);
  }

  async *run(
    prompt: string | readonly ContentBlock[],
    options: RunOptions = {},
  ): AsyncGenerator<AgentEvent, void, undefined> {
    const refusal = this.#refusal();
    if (refusal !== undefined) {
      yield endEvent({ reason: "error", text: "", error: refusal }, NO_TOKENS);
      return;
    }
    const queue = new EventQueue<AgentEvent>();
    const ending = runSignal(options.signal, this.session);
    const ended = this.#run(prompt, (event) => queue.push(event), ending.signal).then((end) => {
      ending.dispose();
      // Whoever reads the end may begin the next run.
      this.#running = undefined;
      queue.end(end);
    });
    this.#running = { abort: ending.abort, ended };
    try {
      yield* queue;
    } finally {
      ending.abort();
      await ended;
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#running?.abort();
    await this.#running?.ended;
    this.#notices.close();
    if (!this.#options.ownsSession) return this.#letGo();
    this.session.close();
    await this.session.over;
  }

  /** Leaves a session that goes on without it as it was. */
  #letGo(): void {
    if (!this.#isSeated) return;
    this.#isSeated = false;
    taken.delete(this.session);
    if (this.session.closed) return;
    clearMode(this.session);
    narrowToPatterns(this.session, {});
    removeBuiltInTools(this.session);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #refusal(): ToolcribError | undefined {
    if (this.#running !== undefined) {
      return new ToolcribError("conflict", "The agent is at work already: it has one run at a time.", {
        hint: "Wait for the end of the run, or cancel it with its signal. Another agent, with a session and a conversation of its own, can work at the same time.",
      });
    }
    return this.#closed ? new ToolcribError("server_unavailable", "The agent is closed.") : undefined;
  }

  /** Never rejects. */
  async #run(prompt: string | readonly ContentBlock[], emit: Emit, signal: AbortSignal): Promise<EndEvent> {
    const silence = this.#notices.tell(emit);
    this.#emit = emit;
    let turn: Turn | undefined;
    try {
      if (signal.aborted) throw abortError(signal);
      await untilAborted(this.#options.mounted ?? Promise.resolve(), signal);
      this.#notices.sayOfLate(lateServers(this.#options.hub, this.session));
      const content = userContent(prompt);
      const command = await this.#command(content, signal);
      if (command.kind === "answer") return endEvent(await this.#answered(content, command, emit), NO_TOKENS);
      const message: UserMessage =
        command.kind === "prompt"
          ? { role: "user", content: [...command.content, ...content.filter(isNoText)], said: textOf(content) }
          : { role: "user", content };
      turn = await this.#turn(message, emit, signal);
      return endEvent(await turn.run(), turn.usage);
    } catch (thrown) {
      const error = asToolcribError(thrown);
      const isCancelled = error.code === "cancelled" || (signal.aborted && abortError(signal).code === "cancelled");
      const ending: Ending = isCancelled ? { reason: "cancelled", text: "" } : { reason: "error", text: "", error };
      return endEvent(ending, turn?.usage ?? NO_TOKENS);
    } finally {
      silence();
      this.#emit = undefined;
    }
  }

  async #command(content: readonly ContentBlock[], signal: AbortSignal): Promise<SlashResult> {
    const { hub, onAsk } = this.#options;
    const toolCallId = `command_${randomUUID()}`;
    const command = await runSlashCommand(hub, this.session, textOf(content), {
      signal,
      ...(onAsk && { onAsk: (request, asking) => onAsk(request, { toolCallId, signal: asking }) }),
    });
    if (signal.aborted) throw abortError(signal);
    if (command.kind === "prompt" && command.notice !== undefined) this.#notices.say(command.notice);
    return command;
  }

  async #turn(message: UserMessage, emit: Emit, signal: AbortSignal): Promise<Turn> {
    const { hub, ...options } = this.#options;
    const config = hub.config.config.agent;
    const model = await untilAborted(this.model(), signal);
    const { conversation, session } = this;
    await conversation.append([message]);
    await conversation.setFacts({ mode: this.#mode, model: model.id });
    return new Turn({
      hub,
      session,
      model,
      conversation,
      query: textOf(message.content),
      instructions: options.instructions ?? config.instructions,
      include: options.include ?? config.include,
      exclude: options.exclude ?? config.exclude,
      maxTools: options.maxTools ?? config.maxTools,
      maxSteps: options.maxSteps ?? config.maxSteps,
      maxTokens: options.maxTokens ?? config.maxTokens,
      maxOutputTokens: options.maxOutputTokens ?? config.maxOutputTokens,
      resultBytes: config.resultBytes,
      skillsBudget: config.skillsBudget,
      onAsk: options.onAsk,
      mode: () => this.#mode,
      prepare: () => this.#addTools(),
      emit,
      signal,
      clock: options.clock ?? systemClock,
    });
  }

  /** A skill that hands over to a tool: no model is asked, and what came of it, or why nothing did, is part of the conversation. */
  async #answered(
    content: readonly ContentBlock[],
    answer: Extract<SlashResult, { kind: "answer" }>,
    emit: Emit,
  ): Promise<Ending> {
    const text = answer.content.map(describeBlock).join("\n");
    const kept = answer.forModel.map(describeBlock).join("\n");
    emit({ type: "text", text });
    await this.conversation.append([
      { role: "user", content },
      { role: "assistant", parts: [{ type: "text", text: kept === "" ? "(no output)" : kept }] },
    ]);
    return { reason: "done", text };
  }

  #addTools(): void {
    addBuiltInTools(this.#options.hub, this.session, {
      onPlan: (entries) => this.#emit?.({ type: "plan", entries }),
      onNotice: (notice) => this.#notices.say(notice),
    });
  }
}

function sessionTaken(): ToolcribError {
  return new ToolcribError("conflict", "The session has an agent already.", {
    hint: "Close that one first, or open another session: an agent sets the rules and the tools of its session.",
  });
}

function endEvent({ reason, text, error }: Ending, usage: Tokens): EndEvent {
  return { type: "end", reason, text, usage, ...(error === undefined ? {} : { error: error.toObject() }) };
}

function userContent(prompt: string | readonly ContentBlock[]): readonly ContentBlock[] {
  const content = typeof prompt === "string" ? [{ type: "text", text: prompt }] : blocksOf(prompt);
  const isEmpty = content.every((block) => block.type === "text" && textOf([block]).trim() === "");
  if (!isEmpty) return content;
  throw new ToolcribError("invalid_arguments", "The prompt is empty.", { hint: "Say what the agent is to do." });
}

/** Programs without types call it too. */
function blocksOf(prompt: unknown): readonly ContentBlock[] {
  const isBlock = (block: unknown): block is ContentBlock => isJsonObject(block) && typeof block["type"] === "string";
  if (Array.isArray(prompt) && prompt.every(isBlock)) return prompt;
  throw new ToolcribError("invalid_arguments", "The prompt is neither a text nor a list of content blocks.", {
    hint: 'A block is an object with a type, such as { type: "text", text: "…" }.',
  });
}

function isNoText(block: ContentBlock): boolean {
  return block.type !== "text";
}

function textOf(content: readonly ContentBlock[]): string {
  return content
    .flatMap((block) => (typeof block["text"] === "string" && !isNoText(block) ? [block["text"]] : []))
    .join("\n");
}
