/** `createAgent` and the agent behind it: its session, model and conversation, and the one run in progress. */
import { randomUUID } from "node:crypto";
import { type Clock, systemClock } from "../base/clock.ts";
import type { Hub } from "../hub/hub.ts";
import type { ModelSetting } from "../model/config.ts";
import { describeBlock, isContentBlock, textBlock } from "../model/content.ts";
import { asToolcribError, ToolcribError } from "../model/errors.ts";
import type { ContentBlock } from "../model/protocol.ts";
import type { SessionParts, SessionNotice } from "../sessions/session-parts.ts";
import type { Session } from "../sessions/session.ts";
import { abortError, abortable } from "./abortable.ts";
import type { Agent, AgentEvent, AgentMode, AgentOptions, RunOptions, SlashCommand, Tokens } from "./agent-options.ts";
import { answerSampling } from "./answer-sampling.ts";
import { type Conversation, Conversations } from "./conversation.ts";
import { type RunEnd, AgentRun } from "./loop/agent-run.ts";
import type { ChatModel, UserMessage } from "./model/chat-model.ts";
import { addBuiltInTools, removeBuiltInTools } from "./tools/built-in-tools.ts";
import { applyMode, applyToolPatterns, clearMode } from "./tools/session-rules.ts";
import { runSlashCommand, slashCommands, type SlashResult } from "./tools/slash-commands.ts";

/**
 * Creates an agent that uses the tools of a hub. Nothing is connected yet; its first run opens the model.
 *
 *     await using agent = createAgent({ hub, model: "anthropic/claude-sonnet-4-5" });
 *     for await (const event of agent.run("What changed in this folder today?")) {
 *       if (event.type === "text") process.stdout.write(event.text);
 *     }
 */
export function createAgent(options: AgentOptions): Agent {
  const { hub, clock = systemClock, env = process.env } = options;
  const model = new SelectedModel(options.model, { hub, env, clock });
  const { session, mounted } =
    options.session === undefined ? openOwnSession(options, model) : { session: options.session };
  const conversation =
    options.conversation ??
    new Conversations(hub, clock).create({
      door: session.door,
      cwd: session.workspaceDir,
      user: session.user,
    });
  hub.internals.taints.join(session, conversation.id);
  return new BuiltInAgent({ ...options, model, session, conversation, ownsSession: mounted !== undefined, mounted });
}

interface OwnSession {
  readonly session: Session;
  /** Resolves when its servers are ready, have failed or take too long. */
  readonly mounted: Promise<void>;
}

function openOwnSession(options: AgentOptions, model: SelectedModel): OwnSession {
  const { hub } = options;
  const { servers, ...given } = options.sessionOptions ?? {};
  const config = hub.config.config.agent;
  const mode = options.sampling ?? config.sampling;
  // A session without the callback does not offer sampling to servers.
  const sampling =
    mode === "deny"
      ? {}
      : {
          onSample: answerSampling({
            model: () => model.open(),
            mode,
            maxTokens: config.samplingTokens,
            clock: options.clock,
            ask: options.onSampling,
          }),
        };
  const session = hub.openSession({ ...sampling, ...given });
  const mounted = servers === undefined ? Promise.resolve() : session.own.mount(servers);
  // The first run reports it.
  mounted.catch(() => {});
  return { session, mounted };
}

interface BuiltInAgentOptions extends Omit<AgentOptions, "model" | "session" | "conversation"> {
  readonly model: SelectedModel;
  readonly session: Session;
  /** Whether it is closed with the agent. */
  readonly ownsSession: boolean;
  readonly mounted?: Promise<void>;
  readonly conversation: Conversation;
}

type EndEvent = Extract<AgentEvent, { type: "end" }>;
type Emit = (event: AgentEvent) => void;

/** Sessions whose rules and tools are set by an agent. */
const sessionsWithAgent = new WeakSet<Session>();

const NO_TOKENS: Tokens = { input: 0, output: 0 };
const MODES: readonly AgentMode[] = ["ask", "auto", "read-only"];

class BuiltInAgent implements Agent {
  readonly session: Session;
  readonly conversation: Conversation;
  readonly #options: BuiltInAgentOptions;
  readonly #notices: RunNotices;
  #mode: AgentMode;
  #emit: Emit | undefined;
  #running: { readonly abort: () => void; readonly ended: Promise<unknown> } | undefined;
  #closed = false;
  #holdsSession = true;

  constructor(options: BuiltInAgentOptions) {
    if (sessionsWithAgent.has(options.session)) {
      throw new ToolcribError("conflict", "The session already has an agent.", {
        hint: "Close that agent first, or open another session. An agent sets the rules and tools of its session.",
      });
    }
    sessionsWithAgent.add(options.session);
    this.#options = options;
    this.session = options.session;
    this.conversation = options.conversation;
    const kept = MODES.find((mode) => mode === options.conversation.facts["mode"]);
    this.#mode = options.mode ?? kept ?? "auto";
    this.#notices = new RunNotices(this.session.own);
    applyMode(this.session, this.#mode);
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
    applyMode(this.session, mode);
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
      // The reader of the end may start the next run.
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
    if (!this.#options.ownsSession) return this.#releaseSession();
    this.session.close();
    await this.session.over;
  }

  /** Restores a session that outlives the agent. */
  #releaseSession(): void {
    if (!this.#holdsSession) return;
    this.#holdsSession = false;
    sessionsWithAgent.delete(this.session);
    if (this.session.closed) return;
    clearMode(this.session);
    applyToolPatterns(this.session, {});
    removeBuiltInTools(this.session);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #refusal(): ToolcribError | undefined {
    if (this.#running !== undefined) {
      return new ToolcribError("conflict", "The agent is already running. It has one run at a time.", {
        hint: "Wait for the run to end, or cancel it with its signal. Another agent with its own session and conversation can run at the same time.",
      });
    }
    return this.#closed ? new ToolcribError("server_unavailable", "The agent is closed.") : undefined;
  }

  /** Never rejects. */
  async #run(prompt: string | readonly ContentBlock[], emit: Emit, signal: AbortSignal): Promise<EndEvent> {
    const stopNotices = this.#notices.forward(emit);
    this.#emit = emit;
    let run: AgentRun | undefined;
    try {
      if (signal.aborted) throw abortError(signal);
      await abortable(this.#options.mounted ?? Promise.resolve(), signal);
      this.#notices.announceConnecting(connectingServers(this.#options.hub, this.session));
      const content = userContent(prompt);
      const command = await this.#command(content, signal);
      if (command.kind === "answer") return endEvent(await this.#answered(content, command, emit), NO_TOKENS);
      const message: UserMessage =
        command.kind === "prompt"
          ? { role: "user", content: [...command.content, ...content.filter(isNotText)], said: textOf(content) }
          : { role: "user", content };
      run = await this.#startRun(message, emit, signal);
      return endEvent(await run.run(), run.usage);
    } catch (thrown) {
      const error = asToolcribError(thrown);
      const isCancelled = error.code === "cancelled" || (signal.aborted && abortError(signal).code === "cancelled");
      const ending: RunEnd = isCancelled ? { reason: "cancelled", text: "" } : { reason: "error", text: "", error };
      return endEvent(ending, run?.usage ?? NO_TOKENS);
    } finally {
      stopNotices();
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

  async #startRun(message: UserMessage, emit: Emit, signal: AbortSignal): Promise<AgentRun> {
    const { hub, ...options } = this.#options;
    const config = hub.config.config.agent;
    const model = await abortable(this.model(), signal);
    const { conversation, session } = this;
    await conversation.append([message]);
    await conversation.setFacts({ mode: this.#mode, model: model.id });
    return new AgentRun({
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

  /** A skill that runs a tool directly: the model is not asked, and the result or the error becomes part of the conversation. */
  async #answered(
    content: readonly ContentBlock[],
    answer: Extract<SlashResult, { kind: "answer" }>,
    emit: Emit,
  ): Promise<RunEnd> {
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

function endEvent({ reason, text, error }: RunEnd, usage: Tokens): EndEvent {
  return { type: "end", reason, text, usage, ...(error === undefined ? {} : { error: error.toObject() }) };
}

function userContent(prompt: string | readonly ContentBlock[]): readonly ContentBlock[] {
  const content = typeof prompt === "string" ? [textBlock(prompt)] : blocksOf(prompt);
  const isEmpty = content.every((block) => block.type === "text" && textOf([block]).trim() === "");
  if (!isEmpty) return content;
  throw new ToolcribError("invalid_arguments", "The prompt is empty.", { hint: "Say what the agent should do." });
}

/** Programs without types call it too. */
function blocksOf(prompt: unknown): readonly ContentBlock[] {
  if (Array.isArray(prompt) && prompt.every(isContentBlock)) return prompt;
  throw new ToolcribError("invalid_arguments", "The prompt is neither text nor a list of content blocks.", {
    hint: 'A block is an object with a type, such as { type: "text", text: "…" }.',
  });
}

function isNotText(block: ContentBlock): boolean {
  return block.type !== "text";
}

function textOf(content: readonly ContentBlock[]): string {
  return content
    .flatMap((block) => (typeof block["text"] === "string" && !isNotText(block) ? [block["text"]] : []))
    .join("\n");
}

interface SelectedModelOptions {
  readonly hub: Hub;
  readonly env: NodeJS.ProcessEnv;
  readonly clock: Clock;
}

/** The model of an agent: opened when it is first needed, and again after a failure or another choice. */
class SelectedModel {
  readonly #options: SelectedModelOptions;
  #choice: ModelSetting | ChatModel | undefined;
  #opened: Promise<ChatModel> | undefined;

  /** @param choice The config's `agent.model` if undefined. */
  constructor(choice: ModelSetting | ChatModel | undefined, options: SelectedModelOptions) {
    this.#choice = choice;
    this.#options = options;
  }

  choose(choice: ModelSetting | ChatModel): void {
    this.#choice = choice;
    this.#opened = undefined;
  }

  open(): Promise<ChatModel> {
    if (this.#opened !== undefined) return this.#opened;
    const opened = this.#open();
    this.#opened = opened;
    // The next attempt may succeed, for example because a key was set.
    opened.catch(() => {
      if (this.#opened === opened) this.#opened = undefined;
    });
    return opened;
  }

  async #open(): Promise<ChatModel> {
    const { hub, env, clock } = this.#options;
    const config = hub.config.config.agent;
    const choice = this.#choice ?? config.model;
    if (choice === undefined) {
      throw new ToolcribError("invalid_config", "No model is configured for the agent.", {
        hint: 'Set agent.model in toolcrib.json, such as "anthropic/claude-sonnet-4-5" or "ollama/qwen3".',
      });
    }
    if (isModel(choice)) return choice;
    // Loaded only here, because it brings the `ai` package with it.
    const { openModel } = await import("./model/open-model.ts");
    return openModel(choice, { resolve: (text) => hub.internals.resolve(text), env, retries: config.retries, clock });
  }
}

function isModel(choice: ModelSetting | ChatModel): choice is ChatModel {
  return typeof choice !== "string" && "step" in choice;
}

const MAX_KEPT_NOTICES = 50;

/** Notices of a session about its servers, for the run in progress or else for the next one. */
class RunNotices {
  #kept: SessionNotice[];
  #emit: Emit | undefined;
  readonly #stop: () => void;
  readonly #late = new Set<string>();

  constructor(own: Pick<SessionParts, "notices" | "on">) {
    this.#kept = own.notices().slice(-MAX_KEPT_NOTICES);
    this.#stop = own.on("notice", (notice) => this.say(notice));
  }

  say(notice: SessionNotice): void {
    if (this.#emit !== undefined) this.#emit(noticeEvent(notice));
    else this.#kept = [...this.#kept, notice].slice(-MAX_KEPT_NOTICES);
  }

  /** Each server once, by its id. */
  announceConnecting(servers: ReadonlyMap<string, string>): void {
    for (const [id, server] of servers) {
      if (this.#late.has(id)) continue;
      this.#late.add(id);
      this.say({
        level: "info",
        message: `${server} is still connecting; its tools become available when it is ready.`,
        server,
      });
    }
  }

  /** Emits what has been kept since the last run, then every notice until the returned function is called. */
  forward(emit: Emit): () => void {
    for (const notice of this.#kept.splice(0)) emit(noticeEvent(notice));
    this.#emit = emit;
    return () => {
      this.#emit = undefined;
    };
  }

  close(): void {
    this.#stop();
  }
}

function noticeEvent({ level, message, hint, server }: SessionNotice): AgentEvent {
  return {
    type: "notice",
    level,
    message: hint === undefined ? message : `${message} ${hint}`,
    server,
  };
}

/** Names of the hub's servers that are still connecting, by id. A session reports the servers that it brings itself. */
function connectingServers(hub: Hub, session: Session): ReadonlyMap<string, string> {
  // Only those who see all servers may learn which there are.
  if (!session.owner || session.role !== undefined) return new Map();
  // One that is known from an earlier run can be used already.
  const waitedFor = hub.servers.list().filter(({ state, toolCount }) => state === "connecting" && toolCount === 0);
  return new Map(waitedFor.map(({ id, name }) => [id, name]));
}

/** The events of a run, for one reader: they are kept until they are read. */
class EventQueue<Event> implements AsyncIterable<Event> {
  readonly #events: Event[] = [];
  #ended = false;
  #wake = (): void => {};

  push(event: Event): void {
    if (this.#ended) return;
    this.#events.push(event);
    this.#wake();
  }

  /** The reader gets this event and those before it; later ones are dropped. */
  end(last: Event): void {
    this.push(last);
    this.#ended = true;
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Event, void, undefined> {
    for (;;) {
      const event = this.#events.shift();
      if (event !== undefined) yield event;
      else if (this.#ended) return;
      else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}

/** Ends a run early: by its caller, with its session, or when its events are no longer read. */
interface RunSignal {
  readonly signal: AbortSignal;
  abort(): void;
  /** Removes the listeners from signals that outlive the run. */
  dispose(): void;
}

function runSignal(callers: AbortSignal | undefined, session: Session): RunSignal {
  const controller = new AbortController();
  const abort = (): void => controller.abort();
  const closed = (): void => controller.abort(sessionClosed());
  if (session.closed) closed();
  else if (callers?.aborted === true) abort();
  session.closing.addEventListener("abort", closed, { once: true });
  callers?.addEventListener("abort", abort, { once: true });
  return {
    signal: controller.signal,
    abort,
    dispose() {
      session.closing.removeEventListener("abort", closed);
      callers?.removeEventListener("abort", abort);
    },
  };
}

function sessionClosed(): ToolcribError {
  return new ToolcribError("server_unavailable", "The session of the agent is closed.", {
    hint: "Create another agent. It can continue the same conversation.",
  });
}
