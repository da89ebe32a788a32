import { toolcribHome } from "../../config/find-config.ts";
import { SkillRegistry } from "../../skills/registry/registry.ts";
import type { Invocation } from "../command.ts";
import { commandStore, type CommandStoreOptions } from "../command-store.ts";

/** Imported skills for the length of a command. A store is made only for a command that writes. */
export async function withRegistry<T>(
  invocation: Pick<Invocation, "env" | "cwd" | "flags" | "out">,
  use: (registry: SkillRegistry) => Promise<T>,
  options: CommandStoreOptions = {},
): Promise<T> {
  const store = commandStore(invocation, options);
  try {
    return await use(new SkillRegistry(toolcribHome(invocation.env), store.open));
  } finally {
    await store.close();
  }
}
