import { reapCages } from "../upstream/cages/container/reap.ts";
import type { PidRecords } from "../upstream/orphans/pid-records.ts";

interface ReapOptions {
  readonly home: string;
  readonly env: NodeJS.ProcessEnv;
  readonly warn: (message: string) => void;
}

/** Ends what a hub that died has left running, and says so. */
export async function reapOrphans(pids: PidRecords, { home, env, warn }: ReapOptions): Promise<void> {
  for (const orphan of await pids.reapOrphans()) {
    warn(
      `A process of "${orphan.serverId}" was left over from a hub that died; it ${orphan.gone ? "was ended" : "could not be ended"}.`,
    );
  }
  // Last, because one of those processes may have been about to start a container.
  await reapCages(home, { env, warn });
}
