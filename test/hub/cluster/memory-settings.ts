/** Settings in memory that several nodes share, and that can be away. */
import type { SessionKeysOptions } from "../../../src/hub/cluster/routable-ids.ts";
import { ToolcribError } from "../../../src/model/errors.ts";

type RingStore = SessionKeysOptions["store"];

export class MemorySettings {
  readonly values = new Map<string, string>();
  readonly #listeners = new Set<Parameters<RingStore["follow"]>[0]>();
  isAway = false;
  reads = 0;
  /** Runs once, before the next exchange. */
  meanwhile: (() => Promise<unknown>) | undefined;
  /** Whether others are told of changes. */
  tells = true;

  readonly store: RingStore = {
    settings: {
      get: async (key) => {
        this.reads += 1;
        this.#assertThere();
        return this.values.get(key);
      },
      exchange: async (key, before, after) => {
        const { meanwhile } = this;
        this.meanwhile = undefined;
        await meanwhile?.();
        this.#assertThere();
        if (this.values.get(key) !== before) return false;
        this.values.set(key, after);
        const change = { revision: 1, topic: "settings", subject: key, writer: "another" } as const;
        if (this.tells) for (const listener of this.#listeners) listener(change);
        return true;
      },
    },
    follow: (listener) => {
      this.#listeners.add(listener);
      return () => this.#listeners.delete(listener);
    },
  };

  get text(): string {
    return [...this.values.values()].join("\n");
  }

  #assertThere(): void {
    if (this.isAway) throw new ToolcribError("server_unavailable", "The database is away.");
  }
}
