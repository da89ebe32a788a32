/** Conversations of a program without a store: the same interface, gone with the object. */
import type { Clock } from "../../model/clock.ts";
import type { JsonObject } from "../../model/json.ts";
import { conversationNotThere, conversationWrittenElsewhere } from "../../store/conversation-errors.ts";
import { mergedFacts } from "../../store/merged-facts.ts";
import type { StoredConversation, StoredConversations } from "../../store/store.ts";

interface Kept {
  conversation: StoredConversation;
  readonly messages: JsonObject[];
}

export function memoryConversations(clock: Clock): StoredConversations {
  // Those that were last used are at the end.
  const kept = new Map<string, Kept>();
  const touch = (id: string, entry: Kept): void => {
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
      if (entry === undefined) throw conversationNotThere(id);
      const before = entry.conversation;
      const updatedAt = new Date(clock.now()).toISOString();
      entry.conversation = { ...before, ...rest, facts: mergedFacts(before.facts, facts), updatedAt };
      touch(id, entry);
      return entry.conversation;
    },
    messages: async (id) => [...(kept.get(id)?.messages ?? [])],
    async append(id, after, messages) {
      const entry = kept.get(id);
      if (entry === undefined) throw conversationNotThere(id);
      const found = entry.messages.length;
      if (found !== after) throw conversationWrittenElsewhere(id, after, found);
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
