/** The config of a command; apart from the hub, so that commands which only edit it start quickly. */
import { setTimeout as delay } from "node:timers/promises";
import { toolcribHome } from "../config/find-config.ts";
import type { LoadedConfig } from "../config/load-config.ts";
import { changesDir, mayNeedRecovery } from "../hub/install/install-files.ts";
import { ToolcribError } from "../model/errors.ts";
import type { Invocation } from "./command.ts";
import { loadWithTrustPrompt, type LoadingOptions, showWarnings } from "./load-with-trust.ts";

/** The config that the command line names or that is found, with its warnings shown. */
export async function loadCommandConfig(invocation: Invocation, options: LoadingOptions = {}): Promise<LoadedConfig> {
  const config = await loadCommandConfigQuietly(invocation, options);
  showWarnings(invocation, config.warnings);
  return config;
}

export async function loadCommandConfigQuietly(
  invocation: Invocation,
  options: LoadingOptions = {},
): Promise<LoadedConfig> {
  await recoverInterruptedInstall(invocation);
  return loadWithTrustPrompt(invocation, options);
}

/** Undoes what an install left that was killed in the middle, before a command uses its servers and secrets. */

/** Another command that is undoing the same is waited for so long. */
const MAX_RECOVERY_WAIT_MS = 5000;

/** Costs a look at the home where there is nothing to do. An install of a living process is left alone. */
export async function recoverInterruptedInstall(invocation: Invocation): Promise<void> {
  const { env, out } = invocation;
  const home = toolcribHome(env);
  if (!mayNeedRecovery(home)) return;
  try {
    const restored = await recover(invocation, home);
    if (restored.length > 0)
      out.warn(`A run that was killed left these half changed; they are as before: ${restored.join(", ")}`);
  } catch (error) {
    if (error instanceof ToolcribError) throw error;
    // A home that cannot be written to: nothing can be undone there, and nothing more can go wrong.
    const reason = error instanceof Error ? error.message : String(error);
    out.warn(`What a run that was killed may have left in ${home} cannot be looked after: ${reason}`);
  }
}

async function recover(invocation: Invocation, home: string): Promise<string[]> {
  const [{ recoverInstall }, { hasInterruptedChanges }, { withRegistry }] = await Promise.all([
    import("../hub/install/install-journal.ts"),
    import("../files/change-set/change-set.ts"),
    import("./skill/known-skills.ts"),
  ]);
  return withRegistry(invocation, async (registry) => {
    const place = { home, env: invocation.env, registry };
    const restored = await recoverInstall(place);
    const until = performance.now() + MAX_RECOVERY_WAIT_MS;
    // Several clients may start their servers at once after a power cut. One of them undoes, and the others must not go on
    // with what it has not got to yet.
    while ((await hasInterruptedChanges(changesDir(home))) && performance.now() < until) {
      await delay(50);
      restored.push(...(await recoverInstall(place)));
    }
    return restored;
  });
}
