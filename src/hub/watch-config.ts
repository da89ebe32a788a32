import type { LoadedConfig } from "../config/load-config.ts";
import type { Clock } from "../model/clock.ts";
import type { Emitter } from "../model/emitter.ts";
import type { Store } from "../store/store.ts";
import type { HubEvents } from "./events.ts";
import { followConfig } from "./follow-config.ts";
import type { Reloader } from "./reload.ts";
import type { LiveSkills } from "./skills/live-skills.ts";

interface WatchedHub {
  readonly config: () => LoadedConfig;
  readonly reloader: Reloader;
  readonly events: Emitter<HubEvents>;
  readonly liveSkills: LiveSkills;
  readonly store: Store | undefined;
  readonly clock: Clock;
}

/** Has a hub reload whenever a file of its config, a skill, or what the store has of servers changes. */
export function watchConfig({ config, reloader, events, liveSkills, store, clock }: WatchedHub): () => void {
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
