/** The store that the config names, for commands that use it without a hub. */
import { toolcribHome } from "../config/find-config.ts";
import { LazyStore } from "../store/lazy-store.ts";
import { systemClock } from "../base/clock.ts";
import { ToolcribError } from "../model/errors.ts";
import type { Store } from "../store/store.ts";
import { type ConfigInvocation, loadConfigForStore } from "./load-with-trust.ts";

export interface CommandStoreOptions {
  /** Refuse if no config names the store and the home was last used with an external one. */
  readonly needsRight?: boolean;
  /** Fail if the store cannot be read, instead of continuing without it. */
  readonly needsAll?: boolean;
  /**
   * The command only reads: then a config that cannot be used, and was not asked for, means the store of the home, if that is
   * the one that the home was last used with.
   */
  readonly readsOnly?: boolean;
}

/**
 * It is opened when something asks for it, and made when something is written. Without a config file it is the one of the
 * home; a config that cannot be used is an error, because it may name another.
 */
export function commandStore(invocation: ConfigInvocation, options: CommandStoreOptions = {}): LazyStore {
  return new LazyStore(({ create }) => openForCommand(invocation, create, options));
}

async function openForCommand(
  invocation: ConfigInvocation,
  create: boolean,
  { needsRight = false, needsAll = false, readsOnly = false }: CommandStoreOptions,
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
    if (readsOnly && file === undefined && other === undefined && error instanceof ToolcribError) return undefined;
    throw error;
  });
  if (config === undefined) {
    const { openStore } = await import("../store/open-store.ts");
    return openStore({ home, create: false, warn: (message) => out.warn(message) });
  }
  if (needsRight && config.file === null && other !== undefined) throw otherStoreError(home, other);
  const { store } = await openHubStore(config, create ? undefined : "existing", {
    home,
    clock: systemClock,
    needsAll,
    secrets: new Secrets({ env, home, redactor: out.redactor, ...config.config.secrets }),
    warn: (message) => out.warn(message),
  });
  return store;
}
