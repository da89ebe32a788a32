/** Registries of imported skills on the store of a home, as commands and hubs have them. */
import { LazyStore } from "../../src/store/lazy-store.ts";
import type { Clock } from "../../src/base/clock.ts";
import { SkillRegistry } from "../../src/skills/registry/skill-registry.ts";
import { openStore } from "../../src/store/open-store.ts";

const opened = new Set<LazyStore>();

/** `closeRegistries` closes its store. */
export function registryAt(home: string, clock?: Clock): SkillRegistry {
  const store = new LazyStore(({ create }) => openStore({ home, create }));
  opened.add(store);
  return new SkillRegistry(home, store.open, clock);
}

export async function closeRegistries(): Promise<void> {
  for (const store of opened) await store.close();
  opened.clear();
}
