import { isDeepStrictEqual } from "node:util";
import type { LoadedConfig } from "../config/load-config.ts";
import { asToolcribError } from "../model/errors.ts";
import { watchConfig, type WatchOptions } from "./config-watch.ts";

interface Followed {
  readonly config: () => LoadedConfig;
  readonly onReload: (listener: () => void) => () => void;
  /** Reloads if the files say something else than what holds; another comment is nothing else. */
  readonly reloadIfChanged: () => Promise<void>;
  /** Tells of changes to the skills of the present config, until the returned function is called. */
  readonly watchSkills: (onChange: () => void) => () => void;
  readonly refreshSkills: () => Promise<void>;
  /** Tells of what other processes change in the store, until the returned function is called; undefined without one. */
  readonly followStore: (onChange: (change: { readonly topic: string }) => void) => (() => void) | undefined;
  readonly refreshServers: () => Promise<void>;
  readonly warn: (message: string) => void;
}

/** Keeps a hub in step with its files until the returned function is called. A config given in code has none. */
export function followConfig(hub: Followed, options: WatchOptions = {}): () => void {
  let watched: readonly string[] = [];
  let stopWatching = (): void => {};
  const attempt = (): void => {
    hub.reloadIfChanged().catch((thrown: unknown) => {
      const { message, hint } = asToolcribError(thrown);
      const more = hint === undefined ? "" : ` ${hint}`;
      hub.warn(`The changed config is not taken over, the one before holds on: ${message}${more}`);
    });
  };
  const watchFiles = (): void => {
    const { files, inCode } = hub.config();
    const wanted = inCode ? [] : files;
    if (isDeepStrictEqual(wanted, watched)) return;
    stopWatching();
    watched = wanted;
    stopWatching = watchConfig(wanted, attempt, options);
    // What changed after the files were read, and before they were watched.
    attempt();
  };
  let watchedDirs: readonly string[] = [];
  let stopSkills = (): void => {};
  const refreshSkills = (): void => {
    hub.refreshSkills().catch((thrown: unknown) => {
      hub.warn(`The changed skills are not taken over: ${asToolcribError(thrown).message}`);
    });
  };
  const watchSkills = (): void => {
    const { dirs } = hub.config().config.skills;
    if (watchedDirs === dirs) return;
    stopSkills();
    watchedDirs = dirs;
    stopSkills = hub.watchSkills(refreshSkills);
  };
  const stopListening = hub.onReload(() => {
    watchFiles();
    watchSkills();
  });
  let refreshing = false;
  const stopStore = hub.followStore(({ topic }) => {
    if (topic !== "servers" || refreshing) return;
    refreshing = true;
    // Changes come in batches, and each look at the store sees all of them.
    setImmediate(() => {
      refreshing = false;
      hub.refreshServers().catch((thrown: unknown) => {
        hub.warn(`The changed servers of the store are not taken over: ${asToolcribError(thrown).message}`);
      });
    });
  });
  watchFiles();
  watchSkills();
  return () => {
    stopListening();
    stopStore?.();
    stopWatching();
    stopSkills();
  };
}
