/** The agent of a `toolcrib run`, and the change to another conversation. */
import type { Agent, AgentMode } from "../../agent/agent-options.ts";
import type { Conversation } from "../../agent/conversation/conversation.ts";
import { Conversations } from "../../agent/conversation/conversations.ts";
import { createAgent } from "../../agent/create-agent.ts";
import type { Hub } from "../../hub/hub.ts";
import type { ModelSetting } from "../../model/agent-config.ts";
import { systemClock } from "../../model/clock.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { StoredConversation } from "../../store/store.ts";
import type { TerminalQuestions } from "./terminal-questions.ts";

interface Seating {
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
const LOOKED_THROUGH = 200;

/** An editor's conversations are not offered here: by id they can be gone on with all the same. */
const DOOR = "cli";

export class AgentSeat {
  readonly #seating: Seating;
  readonly #conversations: Conversations;
  #model: ModelSetting;
  #mode: AgentMode;
  #agent: Agent;

  private constructor(seating: Seating, conversations: Conversations, conversation: Conversation) {
    this.#seating = seating;
    this.#conversations = conversations;
    this.#model = seating.model;
    this.#mode = seating.mode;
    this.#agent = this.#make(conversation);
  }

  static async open(seating: Seating, resume: { readonly id: string } | "last" | undefined): Promise<AgentSeat> {
    const { hub, cwd } = seating;
    const conversations = new Conversations(hub.store, systemClock);
    const fresh = conversations.create({ door: DOOR, cwd });
    if (resume === undefined) return new AgentSeat(seating, conversations, fresh);
    const seat = new AgentSeat(seating, conversations, fresh);
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
    const here = { cwd: this.#seating.cwd, door: DOOR, limit: LOOKED_THROUGH };
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
    const { entries } = await this.#conversations.list({ limit: LOOKED_THROUGH });
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
