/** The store that the config names, for commands that use it without a hub. */
import { toolcribHome } from "../config/find-config.ts";
import { LazyStore } from "../store/lazy-store.ts";
import { systemClock } from "../base/clock.ts";
import { ToolcribError } from "../model/errors.ts";
import type { Store } from "../store/store.ts";
import { type ConfigInvocation, loadConfigForStore } from "./load-with-trust.ts";

export interface CommandStoreOptions {
  /** Refuse if no config names the store and the home was last used with an external one. */
  readonly refuseUnknownStore?: boolean;
  /** Fail if the store cannot be read, instead of continuing without it. */
  readonly needsAll?: boolean;
  /**
   * For a command that only reads. If the config cannot be used and was not named, it gets the store of the home, provided
   * that the home was last used with it.
   */
  readonly readOnly?: boolean;
}

type CommandStore = Pick<LazyStore, "open" | "close">;

/**
 * Opened on first use, and created on the first write. Without a config file it is the store of the home. A config that cannot
 * be used is an error, because it may name another store.
 */
export function commandStore(invocation: ConfigInvocation, options: CommandStoreOptions = {}): CommandStore {
  const { attached } = invocation;
  // The hub closes its own.
  if (attached !== undefined) return { open: async () => attached.hub.internals.store, close: async () => {} };
  return new LazyStore(({ create }) => openForCommand(invocation, create, options));
}

async function openForCommand(
  invocation: ConfigInvocation,
  create: boolean,
  { refuseUnknownStore = false, needsAll = false, readOnly = false }: CommandStoreOptions,
): Promise<Store | undefined> {
  const { env, flags, out } = invocation;
  const file = flags.text("config");
  const home = toolcribHome(env);
  const [{ openHubStore, readStoreNote, otherStoreError }, { Secrets }] = await Promise.all([
    import("../hub/create/open-home.ts"),
    import("../secrets/secrets.ts"),
  ]);
  const other = await readStoreNote(home);
  const config = await loadConfigForStore(invocation).catch((error: unknown) => {
    if (readOnly && file === undefined && other === undefined && error instanceof ToolcribError) return undefined;
    throw error;
  });
  if (config === undefined) {
    const { openStore } = await import("../store/open-store.ts");
    return openStore({ home, create: false, warn: (message) => out.warn(message) });
  }
  if (refuseUnknownStore && config.file === null && other !== undefined) throw otherStoreError(home, other);
  const { store } = await openHubStore(config, create ? undefined : "existing", {
    home,
    clock: systemClock,
    needsAll,
    secrets: new Secrets({ env, home, redactor: out.redactor, ...config.config.secrets }),
    warn: (message) => out.warn(message),
  });
  return store;
}
