/** One session of a client: the hub session with the client's servers, the agent, and the updates that report both. */
import { PLAN_TOOL } from "../../catalog/naming.ts";
import { lateMs } from "../../model/config.ts";
import type { ClientInfo } from "../../model/client-info.ts";
import type {
  AgentContext,
  ContentBlock as AcpBlock,
  PromptRequest,
  PromptResponse,
  StopReason,
  Usage,
} from "@agentclientprotocol/sdk/unstable";
import type {
  Agent,
  AgentEvent,
  AgentMode,
  AskContext,
  EndReason,
  PlanEntry,
  SlashCommand,
  Tokens,
  ToolCallEvent,
} from "../../agent/agent-options.ts";
import { createAgent } from "../../agent/agent.ts";
import type { Conversation } from "../../agent/conversation.ts";
import type { AgentMessage, AssistantPart, CallPart, CallResult, UserMessage } from "../../agent/model/chat-model.ts";
import { toolCallLocations, toolCallTitle, toolKind } from "../../agent/tools/tool-facts.ts";
import type { Hub } from "../../hub/hub.ts";
import { isSessionLocalSource } from "../../model/capability.ts";
import type { AskAnswer, AskRequest } from "../../model/decision.ts";
import { ToolcribError } from "../../model/errors.ts";
import { isJsonObject } from "../../model/json.ts";
import type { ContentBlock } from "../../model/protocol.ts";
import type { Session } from "../../sessions/session.ts";
import {
  type ClientFeatures,
  clientFileTools,
  elicitationCallback,
  PermissionRequests,
  samplingOptions,
} from "./client-requests.ts";
import type { ModelChoices } from "./models.ts";
import { stripMarkers, toAcpBlock, ToolCalls } from "./tool-calls.ts";
import { HubServerNotices, type Notice, Notices, Updates } from "./updates.ts";
import type { ProtectedPaths, Workspace } from "./workspace.ts";

interface AcpSessionOptions {
  readonly hub: Hub;
  readonly client: AgentContext;
  readonly offer: ClientFeatures;
  readonly clientInfo: ClientInfo | undefined;
  readonly models: ModelChoices;
  readonly conversation: Conversation;
  readonly workspace: Workspace;
  readonly guarded: ProtectedPaths;
  readonly mode: AgentMode;
  readonly model: string | undefined;
  readonly role: string | undefined;
}

interface RunningTurn {
  readonly controller: AbortController;
  readonly calls: ToolCalls;
}

export class AcpSession {
  readonly id: string;
  readonly #options: AcpSessionOptions;
  readonly #session: Session;
  readonly #updates: Updates;
  readonly #notices: Notices;
  readonly #commands: CommandUpdates;
  readonly #permissions: PermissionRequests;
  readonly #hubServers: HubServerNotices;
  readonly #closing = new AbortController();
  #hubListing: Promise<void> = Promise.resolve();
  #agent: Agent;
  #conversation: Conversation;
  #model: string | undefined;
  #turn: RunningTurn | undefined;
  #takingOver: Promise<void> | undefined;
  #title: string | null;

  /** Its servers come with `mount`. */
  constructor(options: AcpSessionOptions) {
    const { hub, client, offer, conversation, workspace, guarded, mode, model, role } = options;
    this.id = conversation.id;
    this.#options = options;
    const session = hub.openSession({
      door: "acp",
      conversation: conversation.id,
      workspaceDir: workspace.cwd,
      // The client's own servers get its folder; those of the config get what the config says.
      rootsOnRequest: true,
      // The program on stdin has started this process, so it can start others.
      mayRunCommands: true,
      role,
      clientInfo: options.clientInfo && { ...options.clientInfo, cwd: workspace.cwd },
      ...(offer.forms ? { onElicit: elicitationCallback(client, this.id) } : {}),
      ...samplingOptions(hub, { client, sessionId: this.id, model: () => options.models.open(this.model) }),
    });
    this.#session = session;
    this.#model = model;
    this.#title = conversation.title;
    this.#updates = new Updates(client, this.id);
    this.#permissions = new PermissionRequests(client, this.id);
    this.#notices = new Notices(this.#updates, { hasPlace: offer.notices });
    session.own.on("notice", (notice) => this.#notices.tell(notice));
    session.own.setTools("acp-fs", clientFileTools({ client, sessionId: this.id, offer, workspace, guarded }));
    this.#hubServers = new HubServerNotices(hub, session, (notice) => this.#notices.add(notice));
    this.#conversation = conversation;
    this.#agent = this.#makeAgent(mode);
    this.#commands = new CommandUpdates(hub, session, () => this.#agent.commands(), this.#updates);
  }

  get mode(): AgentMode {
    return this.#agent.mode;
  }

  get model(): string | undefined {
    return this.#model ?? this.#options.models.first;
  }

  /** Aborts when it ends, also by an operator. */
  get closing(): AbortSignal {
    return this.#session.closing;
  }

  get workspace(): Workspace {
    return this.#options.workspace;
  }

  /** The client has the response and can get updates. */
  opened(): void {
    this.#notices.opened();
    this.#commands.opened();
  }

  /** Resolves when one of them is ready, all have failed, or they take too long. */
  mount(servers: readonly unknown[]): Promise<void> {
    return this.#session.own.mount(servers, { leavesLate: true });
  }

  /**
   * Resolves when the hub's servers are listed, have failed, or take too long: one that is stuck hides no other, and none of the
   * session's own. The first turn waits for them a moment longer than the session, if that can begin with its own.
   */
  async hubListed(): Promise<void> {
    const { own } = this.#session;
    const { promise: enough, resolve } = Promise.withResolvers<void>();
    const look = (): void => {
      if (own.servers().some(({ status }) => status === "connected")) resolve();
    };
    const stop = own.on("server", look);
    look();
    this.#hubListing = this.#whenHubListed(enough).finally(stop);
    await Promise.race([this.#hubListing, enough]);
  }

  async #whenHubListed(enough: Promise<void>): Promise<void> {
    const { hub } = this.#options;
    const { signal } = this.#closing;
    const began = performance.now();
    const { limits, sessions } = hub.config.config;
    const emptyMs = Math.max(sessions.wait, limits.listWaitMs);
    await hub.internals.listed({ ms: lateMs(limits), emptyMs, signal, enough });
    if (!signal.aborted) this.#hubServers.begin(performance.now() - began);
  }

  tell(notice: Notice): void {
    this.#notices.add(notice);
  }

  /** Takes over messages that another process added; the servers stay. */
  async goOnWith(conversation: Conversation): Promise<void> {
    if (this.#turn !== undefined || conversation.messages.length <= this.#conversation.messages.length) return;
    this.#takingOver = this.#takeOver(conversation).finally(() => (this.#takingOver = undefined));
    await this.#takingOver;
  }

  replay(): Promise<void> {
    const { hub, workspace } = this.#options;
    const running = this.#turn?.calls;
    const to = { hub, session: this.#session, updates: this.#updates, workspace, running };
    return replay(this.#conversation.messages, to);
  }

  async setMode(mode: AgentMode): Promise<void> {
    this.#agent.setMode(mode);
    await this.remember();
    await this.#updates.send({ sessionUpdate: "current_mode_update", currentModeId: mode });
  }

  /** Applies from the next turn on. */
  async setModel(id: string): Promise<void> {
    this.#model = id;
    await this.remember();
  }

  /** Rejects with `conflict` while another prompt is in progress. */
  async prompt({ prompt }: PromptRequest, signal: AbortSignal): Promise<PromptResponse> {
    if (this.#takingOver !== undefined) await this.#takingOver;
    if (this.#turn !== undefined) {
      const hint = "Wait until it ends, or cancel it.";
      throw new ToolcribError("conflict", "A prompt is in progress in this session.", { hint });
    }
    const controller = new AbortController();
    const { hub, workspace, models } = this.#options;
    const calls = new ToolCalls(this.#updates, { workspace, rawBytes: hub.config.config.agent.resultBytes });
    this.#turn = { controller, calls };
    const cancel = (): void => controller.abort();
    signal.addEventListener("abort", cancel, { once: true });
    if (signal.aborted) cancel();
    try {
      const servers = Promise.all([this.#session.own.joined(), this.#hubListing]);
      const [model] = await Promise.all([models.open(this.model), servers]);
      const content = promptContent(prompt, model);
      if (controller.signal.aborted) return { stopReason: "cancelled" };
      this.#agent.setModel(model);
      this.#updates.turnBegins();
      this.#notices.turnBegins();
      const [agent, updates, notices, hubServers] = [this.#agent, this.#updates, this.#notices, this.#hubServers];
      const turn = { agent, modelId: model.id, updates, calls, notices, hubServers, signal: controller.signal };
      return await runTurn(content, turn);
    } finally {
      signal.removeEventListener("abort", cancel);
      this.#notices.turnEnds();
      this.#turn = undefined;
      // It is listed from now on. If that cannot be saved, the prompt is still answered.
      if (this.#conversation.facts["empty"] === true) await this.remember().catch(() => undefined);
      await this.#tellTitle();
    }
  }

  cancel(): void {
    this.#turn?.controller.abort();
  }

  /** Ends the running turn and the session's servers; resolves when none of their processes is left. */
  async close(): Promise<void> {
    this.cancel();
    this.#closing.abort();
    this.#hubServers.close();
    this.#commands.close();
    await this.#agent.close();
    this.#session.close();
    await this.#session.over;
  }

  /** Saves the settings for a later `session/load`. */
  async remember(): Promise<void> {
    const empty = this.#conversation.messages.length === 0 ? true : undefined;
    const { role } = this.#options;
    await this.#conversation.setFacts({ mode: this.mode, model: this.#model, role, empty });
  }

  async #takeOver(conversation: Conversation): Promise<void> {
    const { mode } = this.#agent;
    await this.#agent.close();
    this.#conversation = conversation;
    this.#title = conversation.title;
    this.#agent = this.#makeAgent(mode);
    // A new agent repeats all notices of its session.
    this.#notices.expectFromRun(this.#session.own.notices());
  }

  async #ask(request: AskRequest, { toolCallId, signal }: AskContext): Promise<AskAnswer> {
    const turn = this.#turn;
    if (turn === undefined) return "no";
    const cancelTurn = (): void => turn.controller.abort();
    const { source } = request.origin;
    const isMounted = isSessionLocalSource(source) || this.#session.own.servers().some(({ id }) => id === source);
    const endsWithSession = isMounted || !this.#session.decidesForAll;
    return this.#permissions.ask(request, { toolCallId, calls: turn.calls, signal, endsWithSession, cancelTurn });
  }

  #makeAgent(mode: AgentMode): Agent {
    const { hub } = this.#options;
    const onAsk = (request: AskRequest, context: AskContext): Promise<AskAnswer> => this.#ask(request, context);
    return createAgent({ hub, session: this.#session, conversation: this.#conversation, mode, onAsk });
  }

  async #tellTitle(): Promise<void> {
    const { title, updatedAt } = this.#conversation;
    if (title === null || title === this.#title) return;
    this.#title = title;
    await this.#updates.send({ sessionUpdate: "session_info_update", title, updatedAt });
  }
}

interface TurnContext {
  readonly agent: Agent;
  readonly modelId: string;
  readonly updates: Updates;
  readonly calls: ToolCalls;
  readonly notices: Notices;
  readonly hubServers: HubServerNotices;
  readonly signal: AbortSignal;
}

/** Runs one `session/prompt`: events become updates, the end becomes the response. */
async function runTurn(content: readonly ContentBlock[], turn: TurnContext): Promise<PromptResponse> {
  const { agent, calls, signal } = turn;
  let end: Extract<AgentEvent, { type: "end" }> | undefined;
  try {
    for await (const event of agent.run(content, { signal })) {
      if (event.type === "end") end = event;
      else await reportEvent(event, turn);
    }
  } finally {
    await calls.end({ cancelled: signal.aborted });
  }
  if (end === undefined || signal.aborted) return { stopReason: "cancelled" };
  if (end.reason === "error") {
    const { code, message, hint, details } = end.error ?? { code: "internal", message: "The run failed." };
    throw new ToolcribError(code, message, { hint, details });
  }
  return { stopReason: stopReason(end.reason), usage: toUsage(end.usage) };
}

async function reportEvent(event: Exclude<AgentEvent, { type: "end" }>, turn: TurnContext): Promise<void> {
  const { updates } = turn;
  switch (event.type) {
    case "text":
      return updates.text(stripMarkers(event.text));
    case "thought":
      return updates.thought(event.text);
    case "tool-call":
      return turn.calls.take(event);
    case "plan":
      return updates.send({ sessionUpdate: "plan", entries: event.entries.map((entry) => ({ ...entry })) });
    case "usage": {
      const size = WINDOWS.find(([pattern]) => pattern.test(turn.modelId))?.[1];
      const used = event.step.input + event.step.output;
      return size === undefined ? undefined : updates.send({ sessionUpdate: "usage_update", used, size });
    }
    case "notice":
      // The agent says so too, as it does without an editor.
      return turn.hubServers.saidLate(event.server) ? undefined : turn.notices.addFromRun(event);
  }
}

function toUsage({ input, output, cached }: Tokens): Usage {
  return { inputTokens: input, outputTokens: output, totalTokens: input + output, cachedReadTokens: cached };
}

/**
 * The blocks of a prompt, which ACP took from MCP. Throws `invalid_arguments` for what the model cannot take: leaving it out
 * would change the question.
 */
function promptContent(prompt: readonly AcpBlock[], model: { id: string; images: boolean }): ContentBlock[] {
  if (prompt.length === 0) throw new ToolcribError("invalid_arguments", "The prompt is empty.");
  return prompt.map((block) => {
    if (block.type === "audio") {
      const hint = "Write what it says instead.";
      throw new ToolcribError("invalid_arguments", "The prompt has audio, which this agent does not support.", {
        hint,
      });
    }
    if (block.type === "image" && !model.images) {
      const hint = "Choose a model that sees images, or describe it.";
      throw new ToolcribError("invalid_arguments", `The prompt has an image, which ${model.id} cannot see.`, { hint });
    }
    return { ...block };
  });
}

/** An `error` fails the request instead. */
function stopReason(reason: Exclude<EndReason, "error">): StopReason {
  switch (reason) {
    case "done":
      return "end_turn";
    case "cancelled":
      return "cancelled";
    case "steps":
      return "max_turn_requests";
    case "tokens":
    case "length":
      return "max_tokens";
    case "refusal":
      return "refusal";
  }
}

/** The context window in tokens, for the gauge that some clients show; nothing is reported for other models. */
const WINDOWS: readonly (readonly [pattern: RegExp, tokens: number])[] = [
  [/claude/, 200_000],
  [/gemini/, 1_048_576],
  [/gpt-4\.1/, 1_047_576],
  [/gpt-5/, 400_000],
  [/gpt-4o/, 128_000],
];

interface ReplayContext {
  readonly hub: Hub;
  readonly session: Session;
  readonly updates: Updates;
  readonly workspace: Workspace;
  /** The calls of the running turn, which report themselves. */
  readonly running: ToolCalls | undefined;
}

/** Sends a conversation again, to a client that loads it. */
async function replay(messages: readonly AgentMessage[], to: ReplayContext): Promise<void> {
  const { hub, session, updates, workspace, running } = to;
  const rawBytes = hub.config.config.agent.resultBytes;
  const calls = new ToolCalls(updates, { workspace, rawBytes, isPast: true });
  const asked = new Map<string, CallPart>();
  const ended = new Set(
    messages.flatMap((message) => (message.role === "tool" ? message.results : [])).map(({ id }) => id),
  );
  for (const message of messages) {
    if (message.role === "user") {
      for (const content of userBlocks(message)) await updates.send({ sessionUpdate: "user_message_chunk", content });
    } else if (message.role === "assistant") {
      for (const part of message.parts) await tellPart(part);
    } else {
      for (const result of message.results) await tellResult(result);
    }
  }
  // A process that was killed leaves calls without a result.
  await calls.end({ cancelled: true });
  await running?.retell(ended);

  async function tellPart(part: AssistantPart): Promise<void> {
    if (part.type === "text") return updates.text(stripMarkers(part.text));
    if (part.type === "thought") return updates.thought(part.text);
    if (part.name === PLAN_TOOL) {
      const entries = planEntries(part);
      if (entries.length > 0) await updates.send({ sessionUpdate: "plan", entries });
    }
    if (running !== undefined && !ended.has(part.id)) return;
    asked.set(part.id, part);
    await calls.take({ ...describeCall(part, hub, session), state: "pending" });
  }

  async function tellResult({ id, content, isError }: CallResult): Promise<void> {
    const part = asked.get(id);
    if (part === undefined) return;
    await calls.take({ ...describeCall(part, hub, session), state: isError ? "failed" : "done", content });
  }
}

/** The text that the user typed, if the model got something else. */
function userBlocks(message: UserMessage): AcpBlock[] {
  const said = "said" in message && typeof message.said === "string" ? message.said : undefined;
  if (said === undefined) return message.content.map(toAcpBlock);
  const others = message.content.filter(({ type }) => type !== "text");
  return [{ type: "text", text: said }, ...others.map(toAcpBlock)];
}

/** The call as it was shown when it ran; by its name alone for a tool that is not available now. */
function describeCall({ id, name, input }: CallPart, hub: Hub, session: Session): Omit<ToolCallEvent, "state"> {
  const capability = hub.view(session).tools.find((tool) => tool.name === name);
  const servers = [...session.own.servers(), ...hub.servers.list()];
  const server =
    capability === undefined
      ? servers.find((one) => name.startsWith(`${one.name}__`) || name.startsWith(`${one.id}__`))
      : servers.find((one) => one.id === capability.origin.source);
  // `read_file` of `files__read_file`.
  const bareName = capability?.origin.name ?? name.slice(name.includes("__") ? name.indexOf("__") + 2 : 0);
  const definition = capability?.definition ?? { name: bareName, inputSchema: {} };
  const { workspaceDir } = session;
  return {
    type: "tool-call",
    id,
    name,
    title: toolCallTitle({ definition, server: server?.name, workspaceDir }, input),
    kind: toolKind(bareName, definition.annotations),
    server: server?.id ?? null,
    input,
    locations: toolCallLocations(input, workspaceDir),
  };
}

function planEntries({ input }: CallPart): PlanEntry[] {
  const entries = Array.isArray(input["entries"]) ? input["entries"].filter(isJsonObject) : [];
  return entries.flatMap(({ content, priority, status }) =>
    typeof content === "string" ? [{ content, priority: parsePriority(priority), status: parseStatus(status) }] : [],
  );
}

function parsePriority(value: unknown): PlanEntry["priority"] {
  return value === "high" || value === "low" ? value : "medium";
}

function parseStatus(value: unknown): PlanEntry["status"] {
  return value === "in_progress" || value === "completed" ? value : "pending";
}

/** Reports the skills that a user can call, whenever they change. */
class CommandUpdates {
  readonly #list: () => readonly SlashCommand[];
  readonly #updates: Updates;
  readonly #stops: readonly (() => void)[];
  #told: string | undefined;
  #pending: NodeJS.Immediate | undefined;

  constructor(hub: Hub, session: Session, list: () => readonly SlashCommand[], updates: Updates) {
    this.#list = list;
    this.#updates = updates;
    const changed = (): void => this.#soon();
    this.#stops = [
      hub.on("skills", changed),
      hub.on("catalog", changed),
      hub.on("visibility", changed),
      session.own.on("change", changed),
    ];
  }

  /** The client knows the session, or has loaded it again. */
  opened(): void {
    this.#told = undefined;
    this.#tell();
  }

  close(): void {
    clearImmediate(this.#pending);
    for (const stop of this.#stops) stop();
  }

  /** Several changes at once are one update. Before the client knows the session there is none. */
  #soon(): void {
    if (this.#told === undefined || this.#pending !== undefined) return;
    this.#pending = setImmediate(() => {
      this.#pending = undefined;
      this.#tell();
    });
  }

  #tell(): void {
    const availableCommands = this.#list().map(({ name, description, hint }) => {
      return { name, description, input: hint === undefined ? undefined : { hint } };
    });
    const now = JSON.stringify(availableCommands);
    if (now === this.#told) return;
    this.#told = now;
    void this.#updates.send({ sessionUpdate: "available_commands_update", availableCommands });
  }
}
