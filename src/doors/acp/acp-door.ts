/** The requests of one ACP client: opening, loading, configuring and ending sessions. */
import { type ClientInfo, clientInfoOf } from "../../model/client-info.ts";
import { basename, isAbsolute, resolve } from "node:path";
import {
  type AgentContext,
  type AuthenticateRequest,
  type AuthMethod,
  type CancelNotification,
  type CloseSessionRequest,
  type DeleteSessionRequest,
  type InitializeRequest,
  type InitializeResponse,
  type ListSessionsRequest,
  type ListSessionsResponse,
  type NewSessionResponse,
  type PromptRequest,
  type PromptResponse,
  PROTOCOL_VERSION,
  type SetSessionConfigOptionRequest,
  type SetSessionConfigOptionResponse,
  type SetSessionModeRequest,
} from "@agentclientprotocol/sdk/unstable";
import { abortable } from "../../agent/abortable.ts";
import type { AgentMode } from "../../agent/agent-options.ts";
import { type Conversation, Conversations } from "../../agent/conversation.ts";
import { sealedServersName } from "../../hub/activity/housekeeping.ts";
import type { Hub } from "../../hub/hub.ts";
import { watchFiles } from "../../hub/reload/file-watcher.ts";
import { asToolcribError, ToolcribError } from "../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import { VERSION } from "../../model/version.ts";
import type { AcpDoorOptions } from "./acp-options.ts";
import { AcpSession } from "./acp-session.ts";
import { clientFeatures, type ClientFeatures, NO_FEATURES } from "./client-requests.ts";
import { type McpOverAcp, outlivesConnection } from "./mcp-over-acp.ts";
import { MODEL_OPTION, ModelChoices } from "./models.ts";
import { errorText, sessionNotFound } from "./request-error.ts";
import type { Notice } from "./updates.ts";
import { ProtectedPaths, type Workspace } from "./workspace.ts";

const DOOR = "acp";

export class AcpDoor {
  readonly #options: AcpDoorOptions;
  readonly #mcp: McpOverAcp;
  readonly #models: ModelChoices;
  readonly #conversations: Conversations;
  readonly #sessions = new Map<string, AcpSession>();
  /** The current change of each session: loading it twice at once must not start its servers twice. */
  readonly #changing = new Map<string, Promise<unknown>>();
  /** By session id: cancels the opening. */
  readonly #opening = new Map<string, Set<AbortController>>();
  readonly #remembered: SavedServers;
  readonly #guarded: ProtectedPaths;
  readonly #config: ConfigFollower | undefined;
  #client: AgentContext | undefined;
  #offer: ClientFeatures = NO_FEATURES;
  #clientInfo: ClientInfo | undefined;
  #closed = false;

  constructor(options: AcpDoorOptions, mcp: McpOverAcp) {
    this.#options = options;
    this.#mcp = mcp;
    this.#models = new ModelChoices(options);
    this.#conversations = new Conversations(options.hub);
    this.#remembered = new SavedServers(options.hub);
    this.#guarded = new ProtectedPaths(options);
    const tell = (notice: Notice): void => this.#sessions.forEach((session) => session.tell(notice));
    if (options.followConfig === true) {
      this.#config = new ConfigFollower(options.hub, this.#guarded, { log: options.log, tell });
    }
  }

  connected(client: AgentContext): void {
    this.#client = client;
  }

  async initialize(request: InitializeRequest): Promise<InitializeResponse> {
    this.#offer = clientFeatures(request);
    const client = clientInfoOf(request.clientInfo);
    this.#clientInfo = client && { ...client, transport: "stdio", pid: process.ppid };
    const unusable = await this.#models.unusable();
    const isUsable = !unusable.some(({ id }) => id === undefined);
    const seesImages = isUsable && (await this.#models.open(this.#models.first)).images;
    return initializeResponse({ seesImages, unusable });
  }

  /** Only checks again: keys are set where the agent is started. */
  async authenticate({ methodId }: AuthenticateRequest): Promise<object> {
    const id = [undefined, ...this.#models.ids].find((one) => authMethodId(one) === methodId);
    if (authMethodId(id) !== methodId) {
      throw new ToolcribError("invalid_arguments", `There is no authentication method ${methodId}.`);
    }
    const missing = await this.#models.missing(id ?? this.#models.first);
    if (missing !== undefined) throw missing;
    return {};
  }

  async newSession(place: SessionParams, signal: AbortSignal): Promise<NewSessionResponse> {
    const conversation = this.#conversations.create({ door: DOOR, cwd: place.cwd });
    const servers = place.mcpServers ?? [];
    const session = await this.#opened(conversation.id, signal, (cancelled) =>
      this.#open(conversation, place, servers, cancelled),
    );
    return { sessionId: session.id, ...this.#settings(session) };
  }

  async loadSession(known: ExistingSessionParams, signal: AbortSignal): Promise<object> {
    const session = await this.#take(known, signal);
    await session.replay();
    return this.#settings(session);
  }

  async resumeSession(known: ExistingSessionParams, signal: AbortSignal): Promise<object> {
    return this.#settings(await this.#take(known, signal));
  }

  /** Sessions in which something was said. */
  async listSessions({ cwd, cursor }: ListSessionsRequest): Promise<ListSessionsResponse> {
    let from = cursor ?? undefined;
    for (;;) {
      const folder = cwd == null ? undefined : resolve(cwd);
      const page = await this.#conversations.list({ door: DOOR, cwd: folder, cursor: from });
      const sessions = page.entries.flatMap(({ id, cwd: place, title, updatedAt, facts }) => {
        const isEmpty = facts["empty"] === true && title === null;
        if (place === null || isEmpty || !this.#mayTake(facts)) return [];
        return [{ sessionId: id, cwd: place, title, updatedAt }];
      });
      from = page.nextCursor;
      if (sessions.length > 0 || from === undefined) return { sessions, nextCursor: from };
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
    const mode = parseMode(modeId);
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
        hint: "`agent.models` in the config lists the models that can be chosen.",
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

  /** Ends every session, also those that are being opened. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#config?.close();
    for (const id of this.#opening.keys()) this.#endOpening(id);
    const open = [...this.#sessions.values()];
    this.#sessions.clear();
    await Promise.all(open.map((session) => session.close()));
    await Promise.allSettled(this.#changing.values());
  }

  /** The session of that id, with the servers that the client names now, or those it had. */
  #take(known: ExistingSessionParams, signal: AbortSignal): Promise<AcpSession> {
    const { sessionId, cwd } = known;
    const mcpServers = namedServers(known);
    return this.#opened(sessionId, signal, async (cancelled) => {
      const live = this.#sessions.get(sessionId);
      if (live?.workspace.cwd === cwd) {
        // Another process may have continued or removed it.
        await live.goOnWith(await this.#known(sessionId));
        if (mcpServers !== undefined) await this.#mount(live, mcpServers, cancelled);
        return live;
      }
      // Roots and working directories of servers are settled when they start. A running turn records how it ended.
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

  /** A conversation that had more rights than this role must not be shown to it. */
  #mayTake(facts: Conversation["facts"]): boolean {
    const { role } = this.#options;
    return role === undefined || facts["role"] === role;
  }

  async #open(
    conversation: Conversation,
    place: SessionParams,
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
      clientInfo: this.#clientInfo,
      models: this.#models,
      conversation,
      workspace,
      guarded: this.#guarded,
      mode: initialMode(conversation.facts["mode"], mode),
      model: typeof kept === "string" && this.#models.has(kept) ? kept : this.#models.first,
      role,
    });
    const end = (): void => void session.close();
    cancelled.addEventListener("abort", end, { once: true });
    try {
      if (cancelled.aborted) throw notOpened();
      const listed = Promise.all([this.#mount(session, servers, cancelled), session.hubListed()]);
      // The client of a model needs them, Node takes a moment to load them, and the servers are starting.
      setImmediate(() => void globalThis.Headers);
      await listed;
      await session.remember();
      if (cancelled.aborted || this.#closed || session.closing.aborted) throw notOpened();
    } catch (error) {
      await session.close();
      throw cancelled.aborted ? notOpened() : error;
    } finally {
      cancelled.removeEventListener("abort", end);
    }
    this.#sessions.set(session.id, session);
    const ended = (): void => {
      if (this.#sessions.get(session.id) !== session) return;
      this.#sessions.delete(session.id);
      void session.close();
    };
    session.closing.addEventListener("abort", ended, { once: true });
    return session;
  }

  /** A client that cancels does not wait any longer; a live session keeps its servers. */
  async #mount(session: AcpSession, servers: readonly unknown[], cancelled: AbortSignal): Promise<void> {
    const mounted = session.mount(this.#mcp.reachable(this.#connectedClient(), servers));
    await abortable(mounted, cancelled);
    await this.#remembered.keep(session.id, servers.filter(outlivesConnection)).catch((error: unknown) => {
      this.#options.log(`The servers of a session cannot be saved: ${asToolcribError(error).message}`);
    });
  }

  #settings(session: AcpSession): Omit<NewSessionResponse, "sessionId"> {
    // After the response: before it, the client does not know the session.
    setImmediate(() => session.opened());
    const configOptions = this.#models.configOptions(session.model);
    const modes = { currentModeId: session.mode, availableModes: MODES.map((mode) => ({ ...mode })) };
    return { modes, ...(configOptions.length === 0 ? {} : { configOptions }) };
  }

  #session(id: string): AcpSession {
    const session = this.#sessions.get(id);
    if (session === undefined) throw sessionNotFound(id);
    return session;
  }

  #connectedClient(): AgentContext {
    if (this.#client !== undefined && !this.#closed) return this.#client;
    throw new ToolcribError("cancelled", "The connection is closed.");
  }

  /** Runs in order, and ends when the client cancels, closes the session or disconnects. */
  #opened<Result>(id: string, signal: AbortSignal, open: (cancelled: AbortSignal) => Promise<Result>): Promise<Result> {
    const controller = new AbortController();
    const all = this.#opening.get(id) ?? new Set();
    this.#opening.set(id, all.add(controller));
    return this.#inTurn(id, () => open(AbortSignal.any([signal, controller.signal]))).finally(() => {
      all.delete(controller);
      if (all.size === 0) this.#opening.delete(id);
    });
  }

  /** False if it is not being opened. */
  #endOpening(id: string): boolean {
    const opening = this.#opening.get(id);
    opening?.forEach((controller) => controller.abort());
    return opening !== undefined;
  }

  #inTurn<Result>(id: string, change: () => Promise<Result>): Promise<Result> {
    const before = this.#changing.get(id) ?? Promise.resolve();
    const changed = before.then(change);
    const forget = (): void => void (this.#changing.get(id) === settled && this.#changing.delete(id));
    const settled = changed.then(forget, forget);
    this.#changing.set(id, settled);
    return changed;
  }
}

function notOpened(): ToolcribError {
  return new ToolcribError("cancelled", "The session was not opened: the client cancelled.");
}

interface SessionParams {
  readonly cwd: string;
  readonly additionalDirectories: readonly string[];
  /** As sent: an invalid entry is reported and skipped when they are mounted. Undefined if not named. */
  readonly mcpServers: readonly unknown[] | undefined;
}

interface ExistingSessionParams extends SessionParams {
  readonly sessionId: string;
}

/** Parses params that contain MCP servers: the SDK's schemas would refuse a whole request for one field of one entry. */
export function parseSessionParams(params: unknown): SessionParams {
  const given = objectOf(params);
  return {
    cwd: absolutePath(given["cwd"], "cwd"),
    additionalDirectories: listOf(given, "additionalDirectories").map((dir) =>
      absolutePath(dir, "additionalDirectories"),
    ),
    mcpServers: given["mcpServers"] == null ? undefined : listOf(given, "mcpServers"),
  };
}

/** The protocol wants the list: a client that has nothing to say about servers sends an empty one. */
function namedServers({ mcpServers }: SessionParams): readonly unknown[] | undefined {
  return mcpServers?.length === 0 ? undefined : mcpServers;
}

export function parseExistingSessionParams(params: unknown): ExistingSessionParams {
  const { sessionId } = objectOf(params);
  if (typeof sessionId !== "string" || sessionId === "") throw invalidParam("`sessionId` must be a string.");
  return { sessionId, ...parseSessionParams(params) };
}

function objectOf(params: unknown): JsonObject {
  if (!isJsonObject(params)) throw invalidParam("The params must be an object.");
  return params;
}

function listOf(params: JsonObject, key: string): readonly unknown[] {
  const value = params[key] ?? [];
  if (!Array.isArray(value)) throw invalidParam(`\`${key}\` must be a list.`);
  return value;
}

function absolutePath(value: unknown, key: string): string {
  if (typeof value !== "string" || !isAbsolute(value)) throw invalidParam(`\`${key}\` must be an absolute path.`);
  // One folder has one spelling.
  return resolve(value);
}

function invalidParam(message: string): ToolcribError {
  return new ToolcribError("invalid_arguments", message);
}

const AUTH_METHOD = "model-key";

/** The method id of `authenticate` for a model. */
function authMethodId(id: string | undefined): string {
  return id === undefined ? AUTH_METHOD : `${AUTH_METHOD}:${id}`;
}

interface AgentFacts {
  readonly seesImages: boolean;
  /** Models that cannot be used yet, and why; an undefined id is the default model. */
  readonly unusable: readonly { readonly id: string | undefined; readonly error: ToolcribError }[];
}

/** There is one version; a client that asks for another decides whether it can use this one. */
function initializeResponse({ seesImages, unusable }: AgentFacts): InitializeResponse {
  return {
    protocolVersion: PROTOCOL_VERSION,
    agentInfo: { name: "toolcrib", title: "Toolcrib", version: VERSION },
    agentCapabilities: {
      loadSession: true,
      promptCapabilities: { image: seesImages, audio: false, embeddedContext: true },
      mcpCapabilities: { http: true, sse: true, acp: true },
      sessionCapabilities: { list: {}, resume: {}, close: {}, delete: {} },
    },
    authMethods: unusable.map(({ id, error }) => authMethod(id, error)),
  };
}

function authMethod(model: string | undefined, missing: ToolcribError): AuthMethod {
  const variable = missing.details?.["variable"];
  const name = typeof variable === "string" ? `Set ${variable}` : "Set up the model";
  return {
    id: authMethodId(model),
    name: model === undefined ? name : `${name} for ${model}`,
    description: errorText(missing.toObject()),
  };
}

const MODES: readonly { readonly id: AgentMode; readonly name: string; readonly description: string }[] = [
  { id: "ask", name: "Ask", description: "Asks before every tool that is not read-only." },
  { id: "auto", name: "Auto", description: "Asks only where rules say so." },
  { id: "read-only", name: "Read-only", description: "Runs nothing that is not read-only." },
];

function parseMode(value: unknown): AgentMode | undefined {
  return MODES.find(({ id }) => id === value)?.id;
}

const STRICTNESS: readonly AgentMode[] = ["auto", "ask", "read-only"];

/** The mode of a new or loaded session. A loaded one is never laxer than the mode that the agent was started with. */
function initialMode(kept: unknown, given: AgentMode | undefined): AgentMode {
  const left = parseMode(kept);
  if (left === undefined || given === undefined) return left ?? given ?? "ask";
  return STRICTNESS.indexOf(left) > STRICTNESS.indexOf(given) ? left : given;
}

/**
 * The servers of sessions, for a client that resumes one without naming them. They contain the user's keys: the store has them
 * sealed only, and without a store they end with the process.
 */
class SavedServers {
  readonly #hub: Hub;
  readonly #here = new Map<string, readonly unknown[]>();

  constructor(hub: Hub) {
    this.#hub = hub;
  }

  async keep(sessionId: string, servers: readonly unknown[]): Promise<void> {
    this.#here.set(sessionId, servers);
    const { sealed } = this.#hub.internals;
    if (servers.length > 0) await sealed?.put(sealedServersName(sessionId), JSON.stringify(servers));
    else await sealed?.remove(sealedServersName(sessionId));
  }

  /** Rejects if they are saved and cannot be opened: a session without its tools must not look complete. */
  async of(sessionId: string): Promise<readonly unknown[]> {
    const here = this.#here.get(sessionId);
    if (here !== undefined) return here;
    const { sealed, store } = this.#hub.internals;
    if (sealed === undefined || (await store?.sealed.get(sealedServersName(sessionId))) === undefined) return [];
    const servers: unknown = JSON.parse(await sealed.get(sealedServersName(sessionId)));
    return Array.isArray(servers) ? servers : [];
  }

  async forget(sessionId: string): Promise<void> {
    this.#here.delete(sessionId);
    await this.#hub.internals.sealed?.remove(sealedServersName(sessionId));
  }
}

interface NoticeTargets {
  log(message: string): void;
  tell(notice: Notice): void;
}

/**
 * Reloads the hub when its config changes, while no session can write there: a model that adds a server to a config that is
 * reloaded could run commands without approval.
 */
class ConfigFollower {
  readonly #hub: Hub;
  readonly #guarded: ProtectedPaths;
  readonly #told: NoticeTargets;
  readonly #stopListening: () => void;
  #stopFollowing: (() => void) | undefined;
  #stopLooking: (() => void) | undefined;
  /** The hub itself wrote an approval, and has applied it. */
  #isOurs = false;

  constructor(hub: Hub, guarded: ProtectedPaths, told: NoticeTargets) {
    this.#hub = hub;
    this.#guarded = guarded;
    this.#told = told;
    this.#stopFollowing = hub.internals.watch();
    this.#stopListening = hub.on("answer", ({ answer }) => {
      if (answer === "always") this.#isOurs = true;
    });
  }

  /** A session can write in these folders from now on. This is permanent: files stay when the session ends. */
  exposedTo(workspace: Workspace): void {
    if (this.#stopFollowing === undefined || this.#guarded.in(workspace).length === 0) return;
    this.#stopFollowing();
    this.#stopFollowing = undefined;
    const { files, inCode } = this.#hub.config;
    if (!inCode) this.#stopLooking = watchFiles(files, () => this.#changed(files));
  }

  close(): void {
    this.#stopFollowing?.();
    this.#stopLooking?.();
    this.#stopListening();
  }

  #changed(files: readonly string[]): void {
    if (this.#isOurs) {
      this.#isOurs = false;
      return;
    }
    const names = [...new Set(files.map((file) => basename(file)))].join(" or ");
    const message = `${names} changed. Restart the agent to use it.`;
    this.#told.log(message);
    this.#told.tell({ level: "warning", message });
  }
}
