/** One session of a client: the hub's session with the servers it brought, the agent, and what the client is told of both. */
import type { AgentContext, PromptRequest, PromptResponse } from "@agentclientprotocol/sdk/unstable";
import type { Agent, AgentMode, AskContext } from "../../agent/agent-options.ts";
import type { Conversation } from "../../agent/conversation/conversation.ts";
import { createAgent } from "../../agent/create-agent.ts";
import type { Hub } from "../../hub/hub.ts";
import type { AskAnswer, AskRequest } from "../../model/ask.ts";
import { systemClock } from "../../model/clock.ts";
import { ToolcribError } from "../../model/errors.ts";
import { isSessionLocal } from "../../model/local-source.ts";
import { waitAtMost } from "../../sessions/own/wait-at-most.ts";
import type { Session } from "../../sessions/session.ts";
import { clientFileTools } from "./client-files.ts";
import type { ClientOffer } from "./client-offer.ts";
import { Commands } from "./commands.ts";
import { elicitThrough } from "./elicitation.ts";
import type { GuardedPaths } from "./guarded-paths.ts";
import { HubServerNotices } from "./hub-server-notices.ts";
import type { Models } from "./models.ts";
import { type Notice, Notices } from "./notices.ts";
import { Permissions } from "./permissions.ts";
import { promptContent } from "./prompt-content.ts";
import { replay } from "./replay.ts";
import { sampling } from "./sampling.ts";
import { ToolCalls } from "./tool-calls.ts";
import { runTurn } from "./turn.ts";
import { Updates } from "./updates.ts";
import type { Workspace } from "./workspace.ts";

export interface AcpSessionOptions {
  readonly hub: Hub;
  readonly client: AgentContext;
  readonly offer: ClientOffer;
  readonly models: Models;
  readonly conversation: Conversation;
  readonly workspace: Workspace;
  readonly guarded: GuardedPaths;
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
  readonly #commands: Commands;
  readonly #permissions: Permissions;
  readonly #hubServers: HubServerNotices;
  readonly #closing = new AbortController();
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
      workspaceDir: workspace.cwd,
      // The client's own servers get its folder; those of the config get what the config says.
      rootsOnRequest: true,
      // Whoever speaks to this process over its stdin has started it, and can start others.
      mayRunCommands: true,
      role,
      ...(offer.forms ? { onElicit: elicitThrough(client, this.id) } : {}),
      ...sampling(hub, { client, sessionId: this.id, model: () => options.models.open(this.model) }),
    });
    this.#session = session;
    this.#model = model;
    this.#title = conversation.title;
    this.#updates = new Updates(client, this.id);
    this.#permissions = new Permissions(client, this.id);
    this.#notices = new Notices(this.#updates, { hasPlace: offer.notices });
    session.own.on("notice", (notice) => this.#notices.tell(notice));
    session.own.setTools("acp-fs", clientFileTools({ client, sessionId: this.id, offer, workspace, guarded }));
    this.#hubServers = new HubServerNotices(hub, session, (notice) => this.#notices.add(notice));
    this.#conversation = conversation;
    this.#agent = this.#makeAgent(mode);
    this.#commands = new Commands(hub, session, () => this.#agent.commands(), this.#updates);
  }

  get mode(): AgentMode {
    return this.#agent.mode;
  }

  get model(): string | undefined {
    return this.#model ?? this.#options.models.first;
  }

  get workspace(): Workspace {
    return this.#options.workspace;
  }

  /** The client has its answer and can be told more. */
  opened(): void {
    this.#notices.opened();
    this.#commands.opened();
  }

  /** Resolves when they are ready, have failed, or take too long. */
  mount(servers: readonly unknown[]): Promise<void> {
    return this.#session.own.mount(servers);
  }

  /** Resolves when the hub's own servers are there, have failed, or take too long. */
  async hubSettled(): Promise<void> {
    const { hub } = this.#options;
    const ms = hub.config.config.sessions.wait;
    await waitAtMost(hub.settled(), { clock: systemClock, ms, signal: this.#closing.signal });
    if (!this.#closing.signal.aborted) this.#hubServers.begin(ms);
  }

  tell(notice: Notice): void {
    this.#notices.add(notice);
  }

  /** Takes over what another process added to the conversation; its servers stay as they are. */
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

  /** Holds from the next turn on. */
  async setModel(id: string): Promise<void> {
    this.#model = id;
    await this.remember();
  }

  /** Rejects with `conflict` while another one is under way. */
  async prompt({ prompt }: PromptRequest, signal: AbortSignal): Promise<PromptResponse> {
    if (this.#takingOver !== undefined) await this.#takingOver;
    if (this.#turn !== undefined) {
      throw new ToolcribError("conflict", "A prompt is under way in this session.", {
        hint: "Wait for its end, or cancel it.",
      });
    }
    const controller = new AbortController();
    const { hub, workspace, models } = this.#options;
    const calls = new ToolCalls(this.#updates, { workspace, rawBytes: hub.config.config.agent.resultBytes });
    this.#turn = { controller, calls };
    const cancel = (): void => controller.abort();
    signal.addEventListener("abort", cancel, { once: true });
    if (signal.aborted) cancel();
    try {
      const model = await models.open(this.model);
      const content = promptContent(prompt, model);
      if (controller.signal.aborted) return { stopReason: "cancelled" };
      this.#agent.setModel(model);
      this.#updates.turnBegins();
      this.#notices.turnBegins();
      return await runTurn(content, {
        agent: this.#agent,
        modelId: model.id,
        updates: this.#updates,
        calls,
        notices: this.#notices,
        signal: controller.signal,
      });
    } finally {
      signal.removeEventListener("abort", cancel);
      this.#notices.turnEnds();
      this.#turn = undefined;
      // It is in the list from now on. If that cannot be kept, the prompt has been answered all the same.
      if (this.#conversation.facts["empty"] === true) await this.remember().catch(() => undefined);
      await this.#tellTitle();
    }
  }

  cancel(): void {
    this.#turn?.controller.abort();
  }

  /** Ends what is under way, and its servers; resolves when no process of them is left. */
  async close(): Promise<void> {
    this.cancel();
    this.#closing.abort();
    this.#hubServers.close();
    this.#commands.close();
    await this.#agent.close();
    this.#session.close();
    await this.#session.over;
  }

  /** Keeps what a later `session/load` begins with. */
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
    // A new agent begins with all that its session ever said.
    this.#notices.runWillSay(this.#session.own.notices());
  }

  async #ask(request: AskRequest, { toolCallId, signal }: AskContext): Promise<AskAnswer> {
    const turn = this.#turn;
    if (turn === undefined) return "no";
    const cancelTurn = (): void => turn.controller.abort();
    const { source } = request.origin;
    const isBrought = isSessionLocal(source) || this.#session.own.servers().some(({ id }) => id === source);
    return this.#permissions.ask(request, { toolCallId, calls: turn.calls, signal, isBrought, cancelTurn });
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
