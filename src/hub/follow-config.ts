import { isDeepStrictEqual } from "node:util";
import type { LoadedConfig } from "../config/load-config.ts";
import { systemClock } from "../model/clock.ts";
import { asToolcribError } from "../model/errors.ts";
import { watchConfig, type WatchOptions } from "./config-watch.ts";
import { retried } from "./retried.ts";

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
  const { clock = systemClock } = options;
  // The store may be away, which is part of every config.
  const reload = retried(clock, hub.reloadIfChanged, (thrown) => {
    const { message, hint } = asToolcribError(thrown);
    const more = hint === undefined ? "" : ` ${hint}`;
    hub.warn(`The changed config is not taken over, the one before holds on: ${message}${more}`);
  });
  const watchFiles = (): void => {
    const { files, inCode, watched: more = [] } = hub.config();
    const wanted = inCode ? [] : [...files, ...more];
    if (isDeepStrictEqual(wanted, watched)) return;
    stopWatching();
    watched = wanted;
    stopWatching = watchConfig(wanted, reload.begin, options);
    // What changed after the files were read, and before they were watched.
    reload.begin();
  };
  let watchedDirs: readonly string[] = [];
  let stopSkills = (): void => {};
  const skills = retried(clock, hub.refreshSkills, (thrown) => {
    hub.warn(`The changed skills are not taken over: ${asToolcribError(thrown).message}`);
  });
  const watchSkills = (): void => {
    const { dirs } = hub.config().config.skills;
    if (watchedDirs === dirs) return;
    stopSkills();
    watchedDirs = dirs;
    stopSkills = hub.watchSkills(skills.begin);
  };
  const stopListening = hub.onReload(() => {
    watchFiles();
    watchSkills();
  });
  const servers = retried(clock, hub.refreshServers, (thrown) => {
    hub.warn(`The changed servers of the store are not taken over: ${asToolcribError(thrown).message}`);
  });
  let refreshing = false;
  const stopStore = hub.followStore(({ topic }) => {
    if (topic !== "servers" || refreshing) return;
    refreshing = true;
    // Changes come in batches, and each look at the store sees all of them.
    setImmediate(() => {
      refreshing = false;
      servers.begin();
    });
  });
  watchFiles();
  watchSkills();
  return () => {
    stopListening();
    stopStore?.();
    stopWatching();
    stopSkills();
    for (const each of [reload, skills, servers]) each.stop();
  };
}
