import { randomUUID } from "node:crypto";
import { type Clock, systemClock } from "../../model/clock.ts";
import type { Page, Store, StoredConversation, StoredConversations } from "../../store/store.ts";
import { Conversation } from "./conversation.ts";
import { memoryConversations } from "./memory-conversations.ts";

export interface NewConversation {
  /** The door that begins it: `acp`, `cli`, `library`. */
  readonly door: string;
  readonly cwd?: string | undefined;
  readonly user?: string | undefined;
}

export interface ConversationsPage {
  readonly cwd?: string | undefined;
  readonly door?: string | undefined;
  readonly cursor?: string | undefined;
  readonly limit?: number | undefined;
}

/**
 * The conversations of a store. Without one they are kept in this object, and another object does not know them.
 *
 *     const conversations = new Conversations(hub.store);
 *     const conversation = (await conversations.open(id)) ?? conversations.create({ door: "library" });
 *     const agent = createAgent({ hub, conversation });
 */
export class Conversations {
  readonly #kept: StoredConversations;
  readonly #clock: Clock;

  constructor(store: Pick<Store, "conversations"> | undefined, clock: Clock = systemClock) {
    this.#kept = store?.conversations ?? memoryConversations(clock);
    this.#clock = clock;
  }

  /** Nothing is kept before its first message or fact. */
  create({ door, cwd, user }: NewConversation): Conversation {
    const createdAt = new Date(this.#clock.now()).toISOString();
    return new Conversation(this.#kept, this.#clock, {
      id: randomUUID(),
      title: null,
      door,
      cwd: cwd ?? null,
      user: user ?? null,
      createdAt,
      updatedAt: createdAt,
      facts: {},
    });
  }

  /** As it was left; undefined if there is none of that id. */
  async open(id: string): Promise<Conversation | undefined> {
    const stored = await this.#kept.get(id);
    if (stored === undefined) return undefined;
    return new Conversation(this.#kept, this.#clock, stored, await this.#kept.messages(id));
  }

  /** Those that were last used first. */
  list({ limit = 50, ...page }: ConversationsPage = {}): Promise<Page<StoredConversation>> {
    const { cwd, door, cursor } = page;
    return this.#kept.list({
      limit,
      cwd,
      door,
      cursor,
    });
  }

  /** False if it was not there. */
  remove(id: string): Promise<boolean> {
    return this.#kept.remove(id);
  }
}
