/** Keeps a hub in step with the files of its config, its skills, and the servers in its store. */
import { resolve } from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { Clock } from "../../base/clock.ts";
import type { Emitter } from "../../base/emitter.ts";
import { asToolcribError } from "../../model/errors.ts";
import type { LoadedConfig } from "../../model/loaded-config.ts";
import type { Store } from "../../store/store.ts";
import type { HubEvents } from "../hub-events.ts";
import type { UserSkills } from "../skills/user-skills.ts";
import { watchFiles } from "./file-watcher.ts";
import type { Reloader } from "./reloader.ts";

interface WatchedHub {
  readonly current: { readonly config: LoadedConfig };
  readonly reloader: Pick<Reloader, "reloadIfChanged" | "refreshSkills" | "refreshServers">;
  readonly events: Emitter<HubEvents>;
  readonly userSkills: Pick<UserSkills, "watch">;
  readonly store: Pick<Store, "follow"> | undefined;
  readonly clock: Clock;
}

/** Until the returned function is called. A config given in code has no files. */
export function watchConfig({ current, reloader, events, userSkills, store, clock }: WatchedHub): () => void {
  const kept = (failed: string, task: () => Promise<void>): RetriedTask =>
    retryUntilDone(clock, task, {
      failed(thrown) {
        const { message, hint } = asToolcribError(thrown);
        events.emit("warning", { message: [`${failed}: ${message}`, hint].join(" ").trim(), failed });
      },
      done: () => events.emit("mended", { failed }),
    });
  // The store, which is part of every config, may be away.
  const reload = kept("The changed config is not used, the one before still applies", () => reloader.reloadIfChanged());
  const skills = kept("The changed skills are not used", () => reloader.refreshSkills());
  const servers = kept("The changed servers of the store are not used", () => reloader.refreshServers());

  let watchedFiles: readonly string[] = [];
  let stopFiles = (): void => {};
  const watchConfigFiles = (): void => {
    const { files, inCode, watched = [] } = current.config;
    const wanted = inCode ? [] : [...files, ...watched];
    if (isDeepStrictEqual(wanted, watchedFiles)) return;
    stopFiles();
    watchedFiles = wanted;
    stopFiles = watchFiles(wanted, reload.begin, { clock });
    // They may have changed between the reading and the watching.
    reload.begin();
  };
  let watchedDirs: readonly string[] | undefined;
  let stopSkills = (): void => {};
  const watchSkills = (): void => {
    const { config, baseDir } = current.config;
    const dirs = config.skills.dirs.map((dir) => resolve(baseDir, dir));
    if (isDeepStrictEqual(dirs, watchedDirs)) return;
    stopSkills();
    watchedDirs = dirs;
    stopSkills = userSkills.watch(current.config, skills.begin);
  };
  const watch = (): void => {
    watchConfigFiles();
    watchSkills();
  };
  const stopListening = events.on("reload", watch);
  let refreshing = false;
  const stopStore = store?.follow(({ topic }) => {
    if (topic !== "servers" || refreshing) return;
    refreshing = true;
    // Changes come in batches, and each look at the store sees all of them.
    setImmediate(() => {
      refreshing = false;
      servers.begin();
    });
  });
  watch();
  return () => {
    stopListening();
    stopStore?.();
    stopFiles();
    stopSkills();
    for (const each of [reload, skills, servers]) each.stop();
  };
}

const FIRST_PAUSE_MS = 1000;
const MAX_PAUSE_MS = 30_000;

interface RetriedTask {
  /** Runs it now, in place of a repetition that is due. */
  readonly begin: () => void;
  readonly stop: () => void;
}

interface TaskReports {
  /** Of several failures one after the other only the first is reported. */
  readonly failed: (thrown: unknown) => void;
  readonly done: () => void;
}

/** Repeats a task after a failure, with growing pauses, until it succeeds. */
function retryUntilDone(clock: Clock, task: () => Promise<void>, report: TaskReports): RetriedTask {
  let stopped = false;
  /** Counts `begin`: an earlier round is not repeated. */
  let round = 0;
  let cancel = (): void => {};
  const attempt = (ofRound: number, pauseMs: number): void => {
    const isLatest = (): boolean => !stopped && ofRound === round;
    task().then(
      () => {
        if (isLatest()) report.done();
      },
      (thrown: unknown) => {
        if (!isLatest()) return;
        if (pauseMs === FIRST_PAUSE_MS) report.failed(thrown);
        cancel = clock.after(pauseMs, () => attempt(ofRound, Math.min(2 * pauseMs, MAX_PAUSE_MS)));
      },
    );
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
