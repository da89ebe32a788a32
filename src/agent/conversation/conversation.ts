import type { Clock } from "../../model/clock.ts";
import { asToolcribError, ToolcribError } from "../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import { mergedFacts } from "../../store/merged-facts.ts";
import type { ConversationChange, StoredConversation, StoredConversations } from "../../store/store.ts";
import type { AgentMessage } from "../messages.ts";
import { fromStored, toStored } from "./stored-message.ts";

const LONGEST_TITLE = 80;
/** As Kysely, SQLite and PostgreSQL say it. */
const STORE_CLOSED = /driver has already been destroyed|database is not open|after calling end on the pool/;

/** What was said, kept as it goes. One object of it is used at a time: another one that writes makes this one a `conflict`. */
export class Conversation {
  readonly #kept: StoredConversations;
  readonly #clock: Clock;
  readonly #messages: AgentMessage[];
  #stored: StoredConversation;
  /** Messages that are kept, those included that could not be read. */
  #length: number;
  #isKept: boolean;
  #writing: Promise<unknown> = Promise.resolve();

  /** By `Conversations`. `stored` is undefined for a new one, which is kept from its first message or fact on. */
  constructor(kept: StoredConversations, clock: Clock, begun: StoredConversation, stored?: readonly JsonObject[]) {
    this.#kept = kept;
    this.#clock = clock;
    this.#stored = begun;
    this.#isKept = stored !== undefined;
    this.#length = stored?.length ?? 0;
    this.#messages = (stored ?? []).map(fromStored).filter((message) => message !== undefined);
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

  /** What is known about it, such as `mode` and `model`. Never a secret. */
  get facts(): Readonly<JsonObject> {
    return this.#stored.facts;
  }

  get messages(): readonly AgentMessage[] {
    return this.#messages;
  }

  /** Resolves when they are kept, all of them or none. Rejects with `conflict` if another process went on with it. */
  append(messages: readonly AgentMessage[]): Promise<void> {
    return this.#inTurn(async () => {
      if (messages.length === 0) return;
      const title = this.#stored.title ?? titleOf(messages);
      if (!this.#isKept || title !== this.#stored.title) await this.#change({ title });
      await this.#kept.append(this.id, this.#length, messages.map(toStored));
      this.#length += messages.length;
      this.#messages.push(...messages);
      this.#stored = { ...this.#stored, updatedAt: this.#now() };
    });
  }

  /** Adds and replaces facts; undefined takes one out. Rejects with `not_found` if it was removed. */
  setFacts(facts: Readonly<JsonObject>): Promise<void> {
    return this.#inTurn(() => this.#change({ facts }));
  }

  /** It goes on in another folder. */
  setCwd(cwd: string): Promise<void> {
    return this.#inTurn(() => this.#change({ cwd }));
  }

  /** Made only once: one that was removed does not come back. */
  async #change(change: ConversationChange): Promise<void> {
    if (this.#isKept) {
      this.#stored = await this.#kept.change(this.id, change);
      return;
    }
    const facts = mergedFacts(this.#stored.facts, change.facts ?? {});
    const begun = { ...this.#stored, ...change, facts, updatedAt: this.#now() };
    await this.#kept.put(begun);
    this.#stored = begun;
    this.#isKept = true;
  }

  #now(): string {
    return new Date(this.#clock.now()).toISOString();
  }

  #inTurn(write: () => Promise<void>): Promise<void> {
    const written = this.#writing.then(write).catch((thrown: unknown) => {
      throw notKept(thrown);
    });
    this.#writing = written.catch(() => {});
    return written;
  }
}

/** The words of a database say nothing to whoever wanted to go on talking. */
function notKept(thrown: unknown): ToolcribError {
  if (thrown instanceof ToolcribError) return thrown;
  const { message } = asToolcribError(thrown);
  if (!STORE_CLOSED.test(message)) {
    return new ToolcribError("internal", `The conversation could not be kept: ${message}`, { cause: thrown });
  }
  return new ToolcribError("server_unavailable", "The conversation could not be kept: the store is closed.", {
    hint: "Begin again with a hub that is open; what was kept before is still there.",
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
  return text === "" ? null : text.slice(0, LONGEST_TITLE).toWellFormed();
}
