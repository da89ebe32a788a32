/** The agent of `toolcrib run`, its hub, and switching to another conversation. */
import type { Agent, AgentMode } from "../../agent/agent-options.ts";
import { createAgent } from "../../agent/agent.ts";
import { type Conversation, Conversations } from "../../agent/conversation.ts";
import { endsWithin } from "../../base/async.ts";
import { systemClock } from "../../base/clock.ts";
import { createHub } from "../../hub/create/create-hub.ts";
import type { Hub } from "../../hub/hub.ts";
import type { ModelSetting } from "../../model/config.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { LoadedConfig } from "../../model/loaded-config.ts";
import type { StoredConversation } from "../../store/store.ts";
import type { Invocation } from "../command.ts";
import { suggestGuard } from "../suggest-guard.ts";
import type { TerminalQuestions } from "./terminal-questions.ts";
import type { HubEvents } from "../../hub/hub-events.ts";

interface RunAgentOptions {
  readonly hub: Hub;
  readonly cwd: string;
  /** For the API keys of models. */
  readonly env: NodeJS.ProcessEnv;
  readonly model: ModelSetting;
  readonly mode: AgentMode;
  readonly role: string | undefined;
  readonly maxSteps: number | undefined;
  readonly maxTokens: number | undefined;
  readonly questions: TerminalQuestions | undefined;
}

/** An id prefix is searched in this many recent conversations. */
const MAX_SEARCHED_CONVERSATIONS = 200;

/** Conversations of editors are not listed here, but can be resumed by id. */
const DOOR = "cli";

export class RunAgent {
  readonly #options: RunAgentOptions;
  readonly #conversations: Conversations;
  #model: ModelSetting;
  #mode: AgentMode;
  #agent: Agent;

  private constructor(options: RunAgentOptions, conversations: Conversations, conversation: Conversation) {
    this.#options = options;
    this.#conversations = conversations;
    this.#model = options.model;
    this.#mode = options.mode;
    this.#agent = this.#make(conversation);
  }

  static async open(options: RunAgentOptions, resume: { readonly id: string } | "last" | undefined): Promise<RunAgent> {
    const { hub, cwd } = options;
    const conversations = new Conversations(hub, systemClock);
    const agent = new RunAgent(options, conversations, conversations.create({ door: DOOR, cwd }));
    if (resume !== undefined) await agent.resume(resume);
    return agent;
  }

  get agent(): Agent {
    return this.#agent;
  }

  /** A model that cannot be opened changes nothing. */
  async setModel(model: ModelSetting): Promise<void> {
    this.#agent.setModel(model);
    try {
      await this.#agent.model();
    } catch (error) {
      this.#agent.setModel(this.#model);
      throw error;
    }
    this.#model = model;
  }

  setMode(mode: AgentMode): void {
    this.#mode = mode;
    this.#agent.setMode(mode);
  }

  async clear(): Promise<void> {
    await this.#switchTo(this.#conversations.create({ door: DOOR, cwd: this.#options.cwd }));
  }

  async resume(which: { readonly id: string } | "last"): Promise<Conversation> {
    const id = await this.#find(which);
    const conversation = await this.#conversations.open(id);
    if (conversation === undefined) throw notFound(id);
    await this.#switchTo(conversation);
    return conversation;
  }

  /** The conversations that were started in this folder, most recently used first, without empty ones. */
  async recent(limit: number): Promise<readonly StoredConversation[]> {
    const here = { cwd: this.#options.cwd, door: DOOR, limit: MAX_SEARCHED_CONVERSATIONS };
    const { entries } = await this.#conversations.list(here);
    // The first prompt sets the title.
    return entries.filter(({ title }) => title !== null).slice(0, limit);
  }

  async close(): Promise<void> {
    await this.#agent.close();
  }

  async #find(which: { readonly id: string } | "last"): Promise<string> {
    if (which === "last") {
      const [last] = await this.recent(1);
      if (last !== undefined) return last.id;
      throw new ToolcribError("not_found", "There is no conversation to continue in this folder.", {
        hint:
          this.#options.hub.internals.store === undefined
            ? "Conversations are not saved without a store."
            : "List the conversations with /sessions in toolcrib run -i.",
      });
    }
    const { entries } = await this.#conversations.list({ limit: MAX_SEARCHED_CONVERSATIONS });
    const found = entries.filter(({ id }) => id.startsWith(which.id));
    if (found.length > 1) {
      throw new ToolcribError("invalid_arguments", `Several conversations have an id that begins with "${which.id}".`, {
        hint: `Use a longer prefix: ${found.map(({ id }) => id).join(", ")}`,
      });
    }
    return found[0]?.id ?? which.id;
  }

  async #switchTo(conversation: Conversation): Promise<void> {
    const before = this.#agent;
    this.#agent = this.#make(conversation);
    await before.close();
  }

  #make(conversation: Conversation): Agent {
    const { hub, env, cwd, role, maxSteps, maxTokens, questions } = this.#options;
    return createAgent({
      hub,
      conversation,
      env,
      model: this.#model,
      mode: this.#mode,
      maxSteps,
      maxTokens,
      sessionOptions: {
        door: DOOR,
        owner: true,
        workspaceDir: cwd,
        // The working directory was not chosen as a root for the servers of the config.
        rootsOnRequest: true,
        role,
        onElicit: questions?.onElicit,
      },
      onAsk: questions?.onAsk,
      onSampling: questions?.onSampling,
    });
  }
}

function notFound(id: string): ToolcribError {
  return new ToolcribError("not_found", `There is no conversation "${id}".`, {
    hint: "List the conversations of a folder with /sessions in toolcrib run -i.",
  });
}

/** A turn waits this long for its tools. */
const MAX_CONNECT_WAIT_MS = 10_000;

export async function openAgentHub(invocation: Invocation, config: LoadedConfig): Promise<Hub> {
  const { env, out, flags, cwd } = invocation;
  const role = flags.text("role");
  const hub = await createHub(config, {
    wait: false,
    // The agent's session answers requests for roots.
    rootsOnRequest: true,
    workspaceDir: cwd,
    door: "cli",
    env,
    redactor: out.redactor,
    otelExport: true,
    role,
  });
  const tell = ({ server, message }: HubEvents["warning"]): void =>
    out.warn(server === undefined ? message : `${server}: ${message}`);
  hub.warnings().forEach(tell);
  hub.on("warning", tell);
  // For a person, not for the log of a script.
  if (out.prompts.isTTY === true) await suggestGuard(hub, (message) => out.note(message));
  return hub;
}

/** Waits until every server is ready or has failed, but not too long. Reports those that are not connected. */
export async function awaitServers(hub: Hub, { out }: Invocation, signal: AbortSignal): Promise<void> {
  const late = (): string[] => hub.servers.list().flatMap(({ id, state }) => (state === "connecting" ? [id] : []));
  if (late().length > 0) out.transient(`connecting ${late().join(", ")} …`);
  await endsWithin(hub.servers.settled(), { ms: MAX_CONNECT_WAIT_MS, signal });
  out.transient("");
  if (signal.aborted) return;
  for (const { id, state, status, lastError } of hub.servers.list()) {
    if (status === "connected" || state === "idle" || state === "disabled") continue;
    out.note(`not connected: ${id}: ${lastError ?? "still connecting"}`);
  }
}
