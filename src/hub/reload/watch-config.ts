import { isDeepStrictEqual } from "node:util";
import { type Clock, systemClock } from "../../base/clock.ts";
import type { Emitter } from "../../base/emitter.ts";
import type { LoadedConfig } from "../../config/load-config.ts";
import { asToolcribError } from "../../model/errors.ts";
import type { Store } from "../../store/store.ts";
import type { HubEvents } from "../hub-events.ts";
import type { UserSkills } from "../skills/user-skills.ts";
import { watchFiles as watchConfig, type WatchOptions } from "./file-watcher.ts";
import type { Reloader } from "./reloader.ts";

interface WatchTarget {
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
export function followConfig(hub: WatchTarget, options: WatchOptions = {}): () => void {
  let watched: readonly string[] = [];
  let stopWatching = (): void => {};
  const { clock = systemClock } = options;
  // The store may be away, which is part of every config.
  const reload = retryUntilDone(clock, hub.reloadIfChanged, (thrown) => {
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
  const skills = retryUntilDone(clock, hub.refreshSkills, (thrown) => {
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
  const servers = retryUntilDone(clock, hub.refreshServers, (thrown) => {
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

interface WatchedHub {
  readonly config: () => LoadedConfig;
  readonly reloader: Reloader;
  readonly events: Emitter<HubEvents>;
  readonly liveSkills: UserSkills;
  readonly store: Store | undefined;
  readonly clock: Clock;
}

/** Has a hub reload whenever a file of its config, a skill, or what the store has of servers changes. */
export function watchHubConfig({ config, reloader, events, liveSkills, store, clock }: WatchedHub): () => void {
  return followConfig(
    {
      config,
      onReload: (listener) => events.on("reload", listener),
      reloadIfChanged: () => reloader.reloadIfChanged(),
      watchSkills: (onChange) => liveSkills.watch(config(), onChange),
      refreshSkills: () => reloader.refreshSkills(),
      followStore: (onChange) => store?.follow(onChange),
      refreshServers: () => reloader.refreshServers(),
      warn: (message) => events.emit("warning", { message }),
    },
    { clock },
  );
}

/** Work that must be done in the end, though what it needs may be away for a while. */

const FIRST_PAUSE_MS = 1000;
const MAX_PAUSE_MS = 30_000;

interface RetriedTask {
  /** Does it now; what waits to be done again is done by this. */
  readonly begin: () => void;
  readonly stop: () => void;
}

/** Something that is done again after a failure, after longer and longer pauses, until it succeeds. The first failure is told. */
function retryUntilDone(clock: Clock, task: () => Promise<void>, onFailure: (thrown: unknown) => void): RetriedTask {
  let stopped = false;
  /** Of the last `begin`: what an earlier one left to be done is done. */
  let round = 0;
  let cancel = (): void => {};
  const attempt = (ofRound: number, pauseMs: number): void => {
    task().catch((thrown: unknown) => {
      if (stopped || ofRound !== round) return;
      if (pauseMs === FIRST_PAUSE_MS) onFailure(thrown);
      cancel = clock.after(pauseMs, () => attempt(ofRound, Math.min(2 * pauseMs, MAX_PAUSE_MS)));
    });
  };
  return {
    begin() {
      cancel();
      round += 1;
      if (!stopped) attempt(round, FIRST_PAUSE_MS);
    },
    stop() {
      stopped = true;
      cancel();
    },
  };
}
