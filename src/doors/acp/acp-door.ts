/** What one client asks for: its sessions, opened, found again and ended. */
import type {
  AgentContext,
  AuthenticateRequest,
  CancelNotification,
  CloseSessionRequest,
  DeleteSessionRequest,
  InitializeRequest,
  InitializeResponse,
  ListSessionsRequest,
  ListSessionsResponse,
  NewSessionResponse,
  PromptRequest,
  PromptResponse,
  SetSessionConfigOptionRequest,
  SetSessionConfigOptionResponse,
  SetSessionModeRequest,
} from "@agentclientprotocol/sdk/unstable";
import { resolve } from "node:path";
import type { Conversation } from "../../agent/conversation/conversation.ts";
import { Conversations } from "../../agent/conversation/conversations.ts";
import { untilAborted } from "../../agent/loop/until-aborted.ts";
import { asToolcribError, ToolcribError } from "../../model/errors.ts";
import type { AcpDoorOptions } from "./acp-options.ts";
import { AcpSession } from "./acp-session.ts";
import { authMethodId, initializeResponse } from "./capabilities.ts";
import { clientOffer, type ClientOffer, NO_OFFER } from "./client-offer.ts";
import { FollowedConfig } from "./followed-config.ts";
import { GuardedPaths } from "./guarded-paths.ts";
import { type McpOverAcp, outlivesConnection } from "./mcp-over-acp.ts";
import { asMode, modeState, openingMode } from "./modes.ts";
import { MODEL_OPTION, Models } from "./models.ts";
import type { KnownSession, SessionPlace } from "./params.ts";
import type { Notice } from "./notices.ts";
import { RememberedServers } from "./remembered-servers.ts";
import { sessionNotFound } from "./request-error.ts";

const DOOR = "acp";

export class AcpDoor {
  readonly #options: AcpDoorOptions;
  readonly #mcp: McpOverAcp;
  readonly #models: Models;
  readonly #conversations: Conversations;
  readonly #sessions = new Map<string, AcpSession>();
  /** Of each session what is being done to it as a whole: loading it twice at once must not start its servers twice. */
  readonly #changing = new Map<string, Promise<unknown>>();
  /** By the id of a session: what ends the opening of it. */
  readonly #opening = new Map<string, Set<AbortController>>();
  readonly #remembered: RememberedServers;
  readonly #guarded: GuardedPaths;
  readonly #config: FollowedConfig | undefined;
  #client: AgentContext | undefined;
  #offer: ClientOffer = NO_OFFER;
  #closed = false;

  constructor(options: AcpDoorOptions, mcp: McpOverAcp) {
    this.#options = options;
    this.#mcp = mcp;
    this.#models = new Models(options);
    this.#conversations = new Conversations(options.hub.store);
    this.#remembered = new RememberedServers(options.hub);
    this.#guarded = new GuardedPaths(options);
    const tell = (notice: Notice): void => this.#sessions.forEach((session) => session.tell(notice));
    if (options.followConfig === true) {
      this.#config = new FollowedConfig(options.hub, this.#guarded, { log: options.log, tell });
    }
  }

  connected(client: AgentContext): void {
    this.#client = client;
  }

  async initialize(request: InitializeRequest): Promise<InitializeResponse> {
    this.#offer = clientOffer(request);
    const unusable = await this.#models.unusable();
    const isUsable = !unusable.some(({ id }) => id === undefined);
    const seesImages = isUsable && (await this.#models.open(this.#models.first)).images;
    return initializeResponse({ seesImages, unusable });
  }

  /** There is nothing to do here but to look again: keys are set where the agent is started. */
  async authenticate({ methodId }: AuthenticateRequest): Promise<object> {
    const id = [undefined, ...this.#models.ids].find((one) => authMethodId(one) === methodId);
    if (authMethodId(id) !== methodId) {
      throw new ToolcribError("invalid_arguments", `There is no way to authenticate called ${methodId}.`);
    }
    const missing = await this.#models.missing(id ?? this.#models.first);
    if (missing !== undefined) throw missing;
    return {};
  }

  async newSession(place: SessionPlace, signal: AbortSignal): Promise<NewSessionResponse> {
    const conversation = this.#conversations.create({ door: DOOR, cwd: place.cwd });
    const servers = place.mcpServers ?? [];
    const session = await this.#opened(conversation.id, signal, (cancelled) =>
      this.#open(conversation, place, servers, cancelled),
    );
    return { sessionId: session.id, ...this.#settings(session) };
  }

  async loadSession(known: KnownSession, signal: AbortSignal): Promise<object> {
    const session = await this.#take(known, signal);
    await session.replay();
    return this.#settings(session);
  }

  async resumeSession(known: KnownSession, signal: AbortSignal): Promise<object> {
    return this.#settings(await this.#take(known, signal));
  }

  /** Those that something was said in. */
  async listSessions({ cwd, cursor }: ListSessionsRequest): Promise<ListSessionsResponse> {
    let from = cursor ?? undefined;
    for (;;) {
      const page = await this.#conversations.list({
        door: DOOR,
        cwd: cwd == null ? undefined : resolve(cwd),
        cursor: from,
      });
      const sessions = page.entries.flatMap(({ id, cwd: place, title, updatedAt, facts }) => {
        const isEmpty = facts["empty"] === true && title === null;
        return place === null || isEmpty || !this.#mayTake(facts)
          ? []
          : [{ sessionId: id, cwd: place, title, updatedAt }];
      });
      from = page.nextCursor;
      if (sessions.length > 0 || from === undefined) {
        return { sessions, nextCursor: from };
      }
    }
  }

  async closeSession({ sessionId }: CloseSessionRequest): Promise<object> {
    const wasOpening = this.#endOpening(sessionId);
    await this.#inTurn(sessionId, async () => {
      const session = this.#sessions.get(sessionId);
      if (session === undefined && !wasOpening) throw sessionNotFound(sessionId);
      this.#sessions.delete(sessionId);
      await session?.close();
    });
    return {};
  }

  async deleteSession({ sessionId }: DeleteSessionRequest): Promise<object> {
    this.#endOpening(sessionId);
    await this.#inTurn(sessionId, async () => {
      const session = this.#sessions.get(sessionId);
      this.#sessions.delete(sessionId);
      await session?.close();
      if (session === undefined) await this.#known(sessionId);
      await this.#conversations.remove(sessionId);
      await this.#remembered.forget(sessionId);
    });
    return {};
  }

  async setMode({ sessionId, modeId }: SetSessionModeRequest): Promise<object> {
    const mode = asMode(modeId);
    if (mode === undefined) throw new ToolcribError("invalid_arguments", `There is no mode ${modeId}.`);
    await this.#session(sessionId).setMode(mode);
    return {};
  }

  async setConfigOption(request: SetSessionConfigOptionRequest): Promise<SetSessionConfigOptionResponse> {
    const { sessionId, configId, value } = request;
    const session = this.#session(sessionId);
    if (configId !== MODEL_OPTION) throw new ToolcribError("invalid_arguments", `There is no option ${configId}.`);
    if (typeof value !== "string" || !this.#models.has(value)) {
      throw new ToolcribError("invalid_arguments", `There is no model ${String(value)} to choose.`, {
        hint: "`agent.models` of the config names those that can be chosen.",
      });
    }
    await session.setModel(value);
    return { configOptions: this.#models.configOptions(session.model) };
  }

  prompt(request: PromptRequest, signal: AbortSignal): Promise<PromptResponse> {
    return this.#session(request.sessionId).prompt(request, signal);
  }

  cancel({ sessionId }: CancelNotification): void {
    this.#sessions.get(sessionId)?.cancel();
  }

  /** Ends every session, and what is being opened. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#config?.close();
    for (const id of this.#opening.keys()) this.#endOpening(id);
    const open = [...this.#sessions.values()];
    this.#sessions.clear();
    await Promise.all(open.map((session) => session.close()));
    await Promise.allSettled(this.#changing.values());
  }

  /** The session of that id, with the servers that the client names now, or with those it had. */
  #take(known: KnownSession, signal: AbortSignal): Promise<AcpSession> {
    const { sessionId, mcpServers, cwd } = known;
    return this.#opened(sessionId, signal, async (cancelled) => {
      const live = this.#sessions.get(sessionId);
      if (live?.workspace.cwd === cwd) {
        // Another process may have gone on with it, or removed it.
        await live.goOnWith(await this.#known(sessionId));
        if (mcpServers !== undefined) await this.#mount(live, mcpServers, cancelled);
        return live;
      }
      // Roots and working directories of servers are settled when they start. What is under way writes down how it ended.
      this.#sessions.delete(sessionId);
      await live?.close();
      const conversation = await this.#known(sessionId);
      const servers = mcpServers ?? (await this.#remembered.of(sessionId));
      if (conversation.cwd !== cwd) await conversation.setCwd(cwd);
      return this.#open(conversation, known, servers, cancelled);
    });
  }

  async #known(sessionId: string): Promise<Conversation> {
    const conversation = await this.#conversations.open(sessionId);
    if (conversation?.door !== DOOR || !this.#mayTake(conversation.facts)) throw sessionNotFound(sessionId);
    return conversation;
  }

  /** What was said with more rights than this role has is none of its business. */
  #mayTake(facts: Conversation["facts"]): boolean {
    const { role } = this.#options;
    return role === undefined || facts["role"] === role;
  }

  async #open(
    conversation: Conversation,
    place: SessionPlace,
    servers: readonly unknown[],
    cancelled: AbortSignal,
  ): Promise<AcpSession> {
    const { hub, role, mode } = this.#options;
    const { cwd, additionalDirectories } = place;
    const kept = conversation.facts["model"];
    const workspace = { cwd, additionalDirectories };
    const client = this.#connectedClient();
    this.#config?.exposedTo(workspace);
    const session = new AcpSession({
      hub,
      client,
      offer: this.#offer,
      models: this.#models,
      conversation,
      workspace,
      guarded: this.#guarded,
      mode: openingMode(conversation.facts["mode"], mode),
      model: typeof kept === "string" && this.#models.has(kept) ? kept : this.#models.first,
      role,
    });
    const end = (): void => void session.close();
    cancelled.addEventListener("abort", end, { once: true });
    try {
      if (cancelled.aborted) throw notOpened();
      await Promise.all([this.#mount(session, servers, cancelled), session.hubSettled()]);
      await session.remember();
      if (cancelled.aborted || this.#closed) throw notOpened();
    } catch (error) {
      await session.close();
      throw cancelled.aborted ? notOpened() : error;
    } finally {
      cancelled.removeEventListener("abort", end);
    }
    this.#sessions.set(session.id, session);
    return session;
  }

  /** Whoever gives up waits no longer; a session that is live goes on with its servers. */
  async #mount(session: AcpSession, servers: readonly unknown[], cancelled: AbortSignal): Promise<void> {
    const mounted = session.mount(this.#mcp.reachable(this.#connectedClient(), servers));
    await untilAborted(mounted, cancelled);
    await this.#remembered.keep(session.id, servers.filter(outlivesConnection)).catch((error: unknown) => {
      this.#options.log(`The servers of a session cannot be kept: ${asToolcribError(error).message}`);
    });
  }

  #settings(session: AcpSession): Omit<NewSessionResponse, "sessionId"> {
    // After the answer is written: before it, the client does not know the session.
    setImmediate(() => session.opened());
    const configOptions = this.#models.configOptions(session.model);
    return { modes: modeState(session.mode), ...(configOptions.length === 0 ? {} : { configOptions }) };
  }

  #session(id: string): AcpSession {
    const session = this.#sessions.get(id);
    if (session === undefined) throw sessionNotFound(id);
    return session;
  }

  #connectedClient(): AgentContext {
    if (this.#client === undefined || this.#closed) {
      throw new ToolcribError("cancelled", "The connection is closed.");
    }
    return this.#client;
  }

  /** In its turn, and ended by the client's cancellation, by `session/close` and by the end of the connection. */
  #opened<Result>(id: string, signal: AbortSignal, open: (cancelled: AbortSignal) => Promise<Result>): Promise<Result> {
    const controller = new AbortController();
    const all = this.#opening.get(id) ?? new Set();
    this.#opening.set(id, all.add(controller));
    return this.#inTurn(id, () => open(AbortSignal.any([signal, controller.signal]))).finally(() => {
      all.delete(controller);
      if (all.size === 0) this.#opening.delete(id);
    });
  }

  /** False if nobody is opening it. */
  #endOpening(id: string): boolean {
    const opening = this.#opening.get(id);
    opening?.forEach((controller) => controller.abort());
    return opening !== undefined;
  }

  #inTurn<Result>(id: string, change: () => Promise<Result>): Promise<Result> {
    const before = this.#changing.get(id) ?? Promise.resolve();
    const changed = before.then(change);
    const settled = changed
      .catch(() => undefined)
      .then(() => {
        if (this.#changing.get(id) === settled) this.#changing.delete(id);
      });
    this.#changing.set(id, settled);
    return changed;
  }
}

function notOpened(): ToolcribError {
  return new ToolcribError("cancelled", "The session was not opened: the client gave up.");
}
