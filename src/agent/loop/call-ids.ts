/**
 * Ids of calls that are unique in a conversation. Some endpoints number the calls of each answer anew, or give no id at all;
 * whoever shows calls by their id would take two for one.
 */
import { randomUUID } from "node:crypto";
import type { AgentMessage } from "../messages.ts";

export class CallIds {
  readonly #taken = new Set<string>();

  constructor(messages: readonly AgentMessage[]) {
    for (const message of messages) {
      if (message.role !== "assistant") continue;
      for (const part of message.parts) if (part.type === "call") this.#taken.add(part.id);
    }
  }

  take(given: string): string {
    const random = randomUUID().replaceAll("-", "").slice(0, 16);
    const free = given === "" ? `call_${random}` : this.#taken.has(given) ? `${given.slice(0, 40)}_${random}` : given;
    this.#taken.add(free);
    return free;
  }
}
