/** The agent of a `toolcrib run`, and the change to another conversation. */
import { setTimeout as delay } from "node:timers/promises";
import type { Agent, AgentMode } from "../../agent/agent-options.ts";
import { createAgent } from "../../agent/agent.ts";
import { type Conversation, Conversations } from "../../agent/conversation.ts";
import { systemClock } from "../../base/clock.ts";
import type { LoadedConfig } from "../../config/load-config.ts";
import { createHub } from "../../hub/create/create-hub.ts";
import type { Hub } from "../../hub/hub.ts";
import type { ModelSetting } from "../../model/config.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { StoredConversation } from "../../store/store.ts";
import type { Invocation } from "../command.ts";
import type { TerminalQuestions } from "./terminal-questions.ts";

interface RunAgentOptions {
  readonly hub: Hub;
  readonly cwd: string;
  /** Where keys of models are looked up. */
  readonly env: NodeJS.ProcessEnv;
  readonly model: ModelSetting;
  readonly mode: AgentMode;
  readonly role: string | undefined;
  readonly maxSteps: number | undefined;
  readonly maxTokens: number | undefined;
  readonly questions: TerminalQuestions | undefined;
}

/** More than anybody looks through; a beginning of an id that is older is not found. */
const MAX_SEARCHED_CONVERSATIONS = 200;

/** An editor's conversations are not offered here: by id they can be gone on with all the same. */
const DOOR = "cli";

export class RunAgent {
  readonly #seating: RunAgentOptions;
  readonly #conversations: Conversations;
  #model: ModelSetting;
  #mode: AgentMode;
  #agent: Agent;

  private constructor(seating: RunAgentOptions, conversations: Conversations, conversation: Conversation) {
    this.#seating = seating;
    this.#conversations = conversations;
    this.#model = seating.model;
    this.#mode = seating.mode;
    this.#agent = this.#make(conversation);
  }

  static async open(seating: RunAgentOptions, resume: { readonly id: string } | "last" | undefined): Promise<RunAgent> {
    const { hub, cwd } = seating;
    const conversations = new Conversations(hub.store, systemClock);
    const fresh = conversations.create({ door: DOOR, cwd });
    if (resume === undefined) return new RunAgent(seating, conversations, fresh);
    const seat = new RunAgent(seating, conversations, fresh);
    await seat.resume(resume);
    return seat;
  }

  get agent(): Agent {
    return this.#agent;
  }

  /** One that cannot be opened changes nothing. */
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

  /** A new conversation, which knows nothing of the one before. */
  async clear(): Promise<void> {
    await this.#sit(this.#conversations.create({ door: DOOR, cwd: this.#seating.cwd }));
  }

  async resume(which: { readonly id: string } | "last"): Promise<Conversation> {
    const id = await this.#find(which);
    const conversation = await this.#conversations.open(id);
    if (conversation === undefined) throw notFound(id);
    await this.#sit(conversation);
    return conversation;
  }

  /** Those that were begun here, in this folder, and have something in them; those that were last used first. */
  async kept(limit: number): Promise<readonly StoredConversation[]> {
    const here = { cwd: this.#seating.cwd, door: DOOR, limit: MAX_SEARCHED_CONVERSATIONS };
    const { entries } = await this.#conversations.list(here);
    // The first prompt makes the title.
    return entries.filter(({ title }) => title !== null).slice(0, limit);
  }

  async close(): Promise<void> {
    await this.#agent.close();
  }

  async #find(which: { readonly id: string } | "last"): Promise<string> {
    if (which === "last") {
      const [last] = await this.kept(1);
      if (last !== undefined) return last.id;
      throw new ToolcribError("not_found", "There is no conversation of this folder to go on with.", {
        hint:
          this.#seating.hub.store === undefined ? "Without a store none is kept." : "toolcrib run -i, then /sessions.",
      });
    }
    const { entries } = await this.#conversations.list({ limit: MAX_SEARCHED_CONVERSATIONS });
    const found = entries.filter(({ id }) => id.startsWith(which.id));
    if (found.length > 1) {
      throw new ToolcribError("invalid_arguments", `Several conversations begin with "${which.id}".`, {
        hint: `Give more of the id: ${found.map(({ id }) => id).join(", ")}`,
      });
    }
    return found[0]?.id ?? which.id;
  }

  async #sit(conversation: Conversation): Promise<void> {
    const before = this.#agent;
    this.#agent = this.#make(conversation);
    await before.close();
  }

  #make(conversation: Conversation): Agent {
    const { hub, env, cwd, role, maxSteps, maxTokens, questions } = this.#seating;
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
        // Where somebody stands is not a folder that they chose for the servers of the config.
        rootsOnRequest: true,
        role,
        ...(questions === undefined ? {} : { onElicit: questions.onElicit }),
      },
      ...(questions === undefined ? {} : { onAsk: questions.onAsk, onSampling: questions.onSampling }),
    });
  }
}

function notFound(id: string): ToolcribError {
  return new ToolcribError("not_found", `There is no conversation "${id}".`, {
    hint: "In toolcrib run -i, /sessions lists those of a folder.",
  });
}

/** The hub that an agent of the command line works with. */

/** A turn does not begin before its tools are there, within reason. */
const MAX_CONNECT_WAIT_MS = 10_000;

/** Does not wait for servers. */
export async function openAgentHub(invocation: Invocation, config: LoadedConfig): Promise<Hub> {
  const { env, out, flags, cwd } = invocation;
  const role = flags.text("role");
  const hub = await createHub(config, {
    wait: false,
    // The agent's session answers what servers ask.
    rootsOnRequest: true,
    workspaceDir: cwd,
    door: "cli",
    env,
    redactor: out.redactor,
    role,
  });
  const tell = ({ server, message }: ReturnType<Hub["warnings"]>[number]): void =>
    out.warn(server === undefined ? message : `${server}: ${message}`);
  hub.warnings().forEach(tell);
  hub.on("warning", tell);
  return hub;
}

/** Resolves when every server is up or has failed, or when it has taken long enough; says then which are not there. */
export async function awaitServers(hub: Hub, { out }: Invocation, signal: AbortSignal): Promise<void> {
  const late = (): string[] => hub.servers().flatMap(({ id, state }) => (state === "connecting" ? [id] : []));
  if (late().length > 0) out.transient(`connecting ${late().join(", ")} …`);
  const patience = AbortSignal.any([signal, AbortSignal.timeout(MAX_CONNECT_WAIT_MS)]);
  const over = delay(MAX_CONNECT_WAIT_MS * 2, undefined, { signal: patience }).catch(() => {});
  await Promise.race([hub.settled(), over]);
  out.transient("");
  if (signal.aborted) return;
  for (const { id, state, status, lastError } of hub.servers()) {
    if (status === "connected" || state === "idle" || state === "disabled") continue;
    out.note(`not connected: ${id}: ${lastError ?? "it joins when it is ready"}`);
  }
}
