/** Imported skills as a hub has them: on its own store, else on the home's if that is there, which is only read then. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../../model/clock.ts";
import type { SkillRegistry } from "../../skills/registry/registry.ts";
import type { Store } from "../../store/store.ts";
import { LazyStore } from "../lazy-store.ts";

export interface HubRegistryOptions {
  readonly home: string;
  readonly clock: Clock;
  /** The hub's. */
  readonly store: Store | undefined;
  /** Whether a hub without a store may look into the home's. */
  readonly readsHome: boolean;
  readonly warn: (message: string) => void;
}

export class HubRegistry {
  readonly #options: HubRegistryOptions;
  readonly #homeStore: LazyStore;
  #registry: Promise<SkillRegistry> | undefined;

  constructor(options: HubRegistryOptions) {
    this.#options = options;
    this.#homeStore = new LazyStore(async () => {
      if (!options.readsHome) return undefined;
      const { openStore } = await import("../../store/open-store.ts");
      return openStore({ home: options.home, clock: options.clock, create: false });
    });
  }

  /** Whether anything was ever imported: most hubs have nothing, and then nothing is loaded for it. */
  mayHaveSkills(): boolean {
    // With a database for several machines, another one may have imported them.
    return this.#options.store?.kind === "postgres" || existsSync(join(this.#options.home, "skills"));
  }

  get(): Promise<SkillRegistry> {
    this.#registry ??= this.#make();
    return this.#registry;
  }

  /** Calls `onChange` when another process imported or removed skills, until the returned function is called. */
  follow(onChange: () => void): () => void {
    const { store } = this.#options;
    return store === undefined ? () => {} : store.follow(({ topic }) => topic === "skills" && onChange());
  }

  async close(): Promise<void> {
    await this.#homeStore.close();
  }

  async #make(): Promise<SkillRegistry> {
    const { SkillRegistry } = await import("../../skills/registry/registry.ts");
    const { home, clock, store, warn } = this.#options;
    return new SkillRegistry(home, store === undefined ? this.#homeStore.open : async () => store, clock, warn);
  }
}
