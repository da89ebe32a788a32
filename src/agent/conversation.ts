import { randomUUID } from "node:crypto";
import { Queue } from "../base/async.ts";
import { type Clock, systemClock } from "../base/clock.ts";
import type { Hub } from "../hub/hub.ts";
import { describeBlock, isContentBlock, textBlock, truncateMiddle } from "../model/content.ts";
import { asToolcribError, ToolcribError } from "../model/errors.ts";
import { isJsonObject, type JsonObject } from "../model/json.ts";
import type { ContentBlock } from "../model/protocol.ts";
import {
  type ConversationChange,
  conversationConflictError,
  conversationNotFoundError,
  mergeFacts,
  type Page,
  type Store,
  type StoredConversation,
  type StoredConversations,
} from "../store/store.ts";
import type { AgentMessage, AssistantPart, CallResult } from "./model/chat-model.ts";

const MAX_TITLE_LENGTH = 80;
/** As Kysely, SQLite and PostgreSQL say it. */
const STORE_CLOSED = /driver has already been destroyed|database is not open|after calling end on the pool/;

/** A conversation that is saved as it grows. Use one object at a time: if another one writes, this one rejects with `conflict`. */
export class Conversation {
  readonly #kept: StoredConversations;
  readonly #clock: Clock;
  readonly #messages: AgentMessage[];
  #stored: StoredConversation;
  /** Number of stored messages, including those that could not be read. */
  #length: number;
  #isKept: boolean;
  readonly #queue = new Queue();

  /** Called by `Conversations`. `stored` is undefined for a new one, which is stored from its first message or fact on. */
  constructor(kept: StoredConversations, clock: Clock, begun: StoredConversation, stored?: readonly JsonObject[]) {
    this.#kept = kept;
    this.#clock = clock;
    this.#stored = begun;
    this.#isKept = stored !== undefined;
    this.#length = stored?.length ?? 0;
    this.#messages = (stored ?? []).map(fromStoredMessage).filter((message) => message !== undefined);
  }

  get id(): string {
    return this.#stored.id;
  }

  /** The beginning of the first prompt; null until there is one. */
  get title(): string | null {
    return this.#stored.title;
  }

  get door(): string {
    return this.#stored.door;
  }

  get cwd(): string | null {
    return this.#stored.cwd;
  }

  get user(): string | null {
    return this.#stored.user;
  }

  /** ISO time. */
  get createdAt(): string {
    return this.#stored.createdAt;
  }

  /** ISO time of its last use. */
  get updatedAt(): string {
    return this.#stored.updatedAt;
  }

  /** Facts about it, such as `mode` and `model`. Never a secret. */
  get facts(): Readonly<JsonObject> {
    return this.#stored.facts;
  }

  get messages(): readonly AgentMessage[] {
    return this.#messages;
  }

  /** Resolves when all of them are saved; saves all or none. Rejects with `conflict` if another process has continued it. */
  append(messages: readonly AgentMessage[]): Promise<void> {
    return this.#inTurn(async () => {
      if (messages.length === 0) return;
      const title = this.#stored.title ?? titleOf(messages);
      if (!this.#isKept || title !== this.#stored.title) await this.#change({ title });
      await this.#kept.append(this.id, this.#length, messages.map(toStoredMessage));
      this.#length += messages.length;
      this.#messages.push(...messages);
      this.#stored = { ...this.#stored, updatedAt: this.#now() };
    });
  }

  /** Adds and replaces facts; undefined removes one. Rejects with `not_found` if the conversation was removed. */
  setFacts(facts: Readonly<JsonObject>): Promise<void> {
    return this.#inTurn(() => this.#change({ facts }));
  }

  /** Continues it in another folder. */
  setCwd(cwd: string): Promise<void> {
    return this.#inTurn(() => this.#change({ cwd }));
  }

  /** Created only once: a removed conversation does not come back. */
  async #change(change: ConversationChange): Promise<void> {
    if (this.#isKept) {
      this.#stored = await this.#kept.change(this.id, change);
      return;
    }
    const facts = mergeFacts(this.#stored.facts, change.facts ?? {});
    const begun = { ...this.#stored, ...change, facts, updatedAt: this.#now() };
    await this.#kept.put(begun);
    this.#stored = begun;
    this.#isKept = true;
  }

  #now(): string {
    return new Date(this.#clock.now()).toISOString();
  }

  #inTurn(write: () => Promise<void>): Promise<void> {
    return this.#queue.run(write).catch((thrown: unknown) => {
      throw saveError(thrown);
    });
  }
}

/** Messages of a database mean nothing to a user of the agent. */
function saveError(thrown: unknown): ToolcribError {
  if (thrown instanceof ToolcribError) return thrown;
  const { message } = asToolcribError(thrown);
  if (!STORE_CLOSED.test(message)) {
    return new ToolcribError("internal", `The conversation could not be saved: ${message}`, { cause: thrown });
  }
  return new ToolcribError("server_unavailable", "The conversation could not be saved: the store is closed.", {
    hint: "Continue with a hub that is open. Everything saved before is still there.",
    cause: thrown,
  });
}

function titleOf(messages: readonly AgentMessage[]): string | null {
  const first = messages.find((message) => message.role === "user");
  if (first === undefined) return null;
  const expanded = first.content.map((block) =>
    isJsonObject(block) && block.type === "text" ? String(block["text"]) : "",
  );
  const text = (first.said ?? expanded.join(" ")).replace(/\s+/g, " ").trim();
  return text === "" ? null : text.slice(0, MAX_TITLE_LENGTH).toWellFormed();
}

export interface NewConversation {
  /** The door that begins it: `acp`, `cli`, `library`. */
  readonly door: string;
  readonly cwd?: string;
  readonly user?: string;
}

export interface ConversationsPage {
  readonly cwd?: string;
  readonly door?: string;
  readonly cursor?: string;
  readonly limit?: number;
}

/**
 * The conversations of a store. Without a store they are kept in this object only.
 *
 *     const conversations = new Conversations(hub);
 *     const conversation = (await conversations.open(id)) ?? conversations.create({ door: "library" });
 *     const agent = createAgent({ hub, conversation });
 */
export class Conversations {
  readonly #kept: StoredConversations;
  readonly #clock: Clock;

  /** @param source The hub whose store has them, or a store; without a store they are kept here. */
  constructor(source: Hub | Pick<Store, "conversations"> | undefined, clock: Clock = systemClock) {
    const store = source !== undefined && "internals" in source ? source.internals.store : source;
    this.#kept = store?.conversations ?? memoryConversations(clock);
    this.#clock = clock;
  }

  /** Nothing is stored before its first message or fact. */
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

  /** The stored conversation; undefined if there is none with that id. */
  async open(id: string): Promise<Conversation | undefined> {
    const stored = await this.#kept.get(id);
    if (stored === undefined) return undefined;
    return new Conversation(this.#kept, this.#clock, stored, await this.#kept.messages(id));
  }

  /** The most recently used first. */
  list({ limit = 50, ...page }: ConversationsPage = {}): Promise<Page<StoredConversation>> {
    const { cwd, door, cursor } = page;
    return this.#kept.list({ limit, cwd, door, cursor });
  }

  /** False if it was not there. */
  remove(id: string): Promise<boolean> {
    return this.#kept.remove(id);
  }
}

interface MemoryEntry {
  conversation: StoredConversation;
  readonly messages: JsonObject[];
}

/** Conversations of a program without a store: the same interface, gone with the object. */
function memoryConversations(clock: Clock): StoredConversations {
  // The most recently used are at the end.
  const kept = new Map<string, MemoryEntry>();
  const touch = (id: string, entry: MemoryEntry): void => {
    kept.delete(id);
    kept.set(id, entry);
  };
  return {
    get: async (id) => kept.get(id)?.conversation,
    async list({ limit, cursor, cwd, door }) {
      const fitting = [...kept.values()]
        .map(({ conversation }) => conversation)
        .filter((each) => (cwd === undefined || each.cwd === cwd) && (door === undefined || each.door === door))
        .toReversed();
      const start = cursor === undefined ? 0 : fitting.findIndex(({ id }) => id === cursor) + 1;
      const entries = fitting.slice(start, start + limit);
      const last = start + limit < fitting.length ? entries.at(-1) : undefined;
      return { entries, total: fitting.length, ...(last === undefined ? {} : { nextCursor: last.id }) };
    },
    async put(conversation) {
      touch(conversation.id, { conversation, messages: kept.get(conversation.id)?.messages ?? [] });
    },
    async change(id, { facts = {}, ...rest }) {
      const entry = kept.get(id);
      if (entry === undefined) throw conversationNotFoundError(id);
      const before = entry.conversation;
      const updatedAt = new Date(clock.now()).toISOString();
      entry.conversation = { ...before, ...rest, facts: mergeFacts(before.facts, facts), updatedAt };
      touch(id, entry);
      return entry.conversation;
    },
    messages: async (id) => [...(kept.get(id)?.messages ?? [])],
    async append(id, after, messages) {
      const entry = kept.get(id);
      if (entry === undefined) throw conversationNotFoundError(id);
      const found = entry.messages.length;
      if (found !== after) throw conversationConflictError(id, after, found);
      entry.messages.push(...messages);
      entry.conversation = { ...entry.conversation, updatedAt: new Date(clock.now()).toISOString() };
      touch(id, entry);
    },
    remove: async (id) => kept.delete(id),
    async prune(before) {
      const old = [...kept.values()].filter(({ conversation }) => conversation.updatedAt < before);
      for (const { conversation } of old) kept.delete(conversation.id);
      return old.length;
    },
  };
}

/** Above this size of the whole message, images are replaced with text. */
const MAX_MESSAGE_BYTES = 8 * 1024 * 1024;
/** Limit of one text in a message that is still too large without its images. */
const MAX_TEXT_BYTES = 256 * 1024;
const TRUNCATION_NOTE = "\n[... not kept ...]\n";

/** A message as the store keeps it. Images and long texts give way if it is too large. */
export function toStoredMessage(message: AgentMessage): JsonObject {
  if (jsonBytes(message) <= MAX_MESSAGE_BYTES) return { ...message };
  const described = mapBlocks(message, blockAsText);
  if (jsonBytes(described) <= MAX_MESSAGE_BYTES) return { ...described };
  return { ...shortenMessage(mapBlocks(described, shortenBlock)) };
}

/** Undefined for data that no version of this program wrote. */
export function fromStoredMessage(stored: JsonObject): AgentMessage | undefined {
  switch (stored["role"]) {
    case "user":
      return isList(stored["content"], isContentBlock) ? userMessage(stored["content"], stored["said"]) : undefined;
    case "assistant":
      return isList(stored["parts"], isPart) ? { role: "assistant", parts: stored["parts"] } : undefined;
    case "tool":
      return isList(stored["results"], isResult) ? { role: "tool", results: stored["results"] } : undefined;
    default:
      return undefined;
  }
}

function userMessage(content: readonly ContentBlock[], said: unknown): AgentMessage {
  return { role: "user", content, ...(typeof said === "string" ? { said } : {}) };
}

function mapBlocks(message: AgentMessage, change: (block: ContentBlock) => ContentBlock): AgentMessage {
  switch (message.role) {
    case "user":
      return { ...message, content: message.content.map(change) };
    case "assistant":
      return message;
    case "tool":
      return {
        ...message,
        results: message.results.map((result) => ({ ...result, content: result.content.map(change) })),
      };
  }
}

function blockAsText(block: ContentBlock): ContentBlock {
  return block.type === "text" ? block : textBlock(describeBlock(block));
}

function shortenBlock(block: ContentBlock): ContentBlock {
  const text = block["text"];
  return typeof text === "string" ? { ...block, text: truncateMiddle(text, MAX_TEXT_BYTES, TRUNCATION_NOTE) } : block;
}

function shortenMessage(message: AgentMessage): AgentMessage {
  if (message.role === "tool") return message;
  if (message.role === "user") {
    return message.said === undefined
      ? message
      : { ...message, said: truncateMiddle(message.said, MAX_TEXT_BYTES, TRUNCATION_NOTE) };
  }
  const short = (part: AssistantPart): AssistantPart =>
    part.type === "call"
      ? { ...part, input: jsonBytes(part.input) > MAX_TEXT_BYTES ? {} : part.input }
      : { ...part, text: truncateMiddle(part.text, MAX_TEXT_BYTES, TRUNCATION_NOTE) };
  return { ...message, parts: message.parts.map(short) };
}

function jsonBytes(value: object): number {
  return Buffer.byteLength(JSON.stringify(value));
}

function isList<Entry>(value: unknown, fits: (entry: unknown) => entry is Entry): value is Entry[] {
  return Array.isArray(value) && value.every(fits);
}

function isPart(value: unknown): value is AssistantPart {
  if (!isJsonObject(value)) return false;
  if (value["type"] !== "call") {
    return (value["type"] === "text" || value["type"] === "thought") && typeof value["text"] === "string";
  }
  return typeof value["id"] === "string" && typeof value["name"] === "string" && isJsonObject(value["input"]);
}

function isResult(value: unknown): value is CallResult {
  return (
    isJsonObject(value) &&
    typeof value["id"] === "string" &&
    typeof value["name"] === "string" &&
    typeof value["isError"] === "boolean" &&
    isList(value["content"], isContentBlock)
  );
}
