/** Loads the config of a command, without the hub, so that commands that only edit the config start quickly. */
import { setTimeout as delay } from "node:timers/promises";
import { nearMatches } from "../base/near-matches.ts";
import { toolcribHome } from "../config/find-config.ts";
import { changesDir, mayNeedRecovery } from "../hub/install/install-files.ts";
import { ToolcribError } from "../model/errors.ts";
import type { LoadedConfig } from "../model/loaded-config.ts";
import type { Invocation } from "./command.ts";
import { loadWithTrustPrompt, type LoadingOptions, showWarnings } from "./load-with-trust.ts";

/** The config named on the command line, or the one that is found. Shows its warnings. */
export async function loadCommandConfig(invocation: Invocation, options: LoadingOptions = {}): Promise<LoadedConfig> {
  const config = await loadCommandConfigQuietly(invocation, options);
  // A running hub has logged its own.
  if (invocation.attached === undefined) showWarnings(invocation, config.warnings);
  return config;
}

export async function loadCommandConfigQuietly(
  invocation: Invocation,
  options: LoadingOptions = {},
): Promise<LoadedConfig> {
  await recoverInterruptedInstall(invocation);
  return loadWithTrustPrompt(invocation, options);
}

/** How long to wait for another command that is undoing the same install. */
const MAX_RECOVERY_WAIT_MS = 5000;

/**
 * Undoes an install that was killed halfway, before the command uses its servers and secrets. An install of a running process
 * is left alone.
 */
export async function recoverInterruptedInstall(invocation: Invocation): Promise<void> {
  const { env, out, attached } = invocation;
  if (attached !== undefined) return;
  const home = toolcribHome(env);
  if (!mayNeedRecovery(home)) return;
  try {
    const restored = await recover(invocation, home);
    if (restored.length > 0)
      out.warn(`Restored files that an interrupted command had left half changed: ${restored.join(", ")}`);
  } catch (error) {
    if (error instanceof ToolcribError) throw error;
    // The home is not writable, so nothing can be undone and nothing can get worse.
    const reason = error instanceof Error ? error.message : String(error);
    out.warn(`Files that an interrupted command may have left half changed in ${home} cannot be restored: ${reason}`);
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
    // After a power cut several clients may start at once. One of them undoes the install; the others wait until it is done.
    while ((await hasInterruptedChanges(changesDir(home))) && performance.now() < until) {
      await delay(50);
      restored.push(...(await recoverInstall(place)));
    }
    return restored;
  });
}

/** `not_found`, with a suggestion for a mistyped id. */
export function unknownServer(id: string, servers: readonly { readonly id: string }[]): ToolcribError {
  const known = servers.map((server) => server.id);
  const near = nearMatches(id, known);
  return new ToolcribError("not_found", `There is no server "${id}".`, {
    hint: near.length > 0 ? `Did you mean ${near.join(" or ")}?` : `Known servers: ${known.join(", ") || "none"}.`,
  });
}
