/** The hub that an agent of the command line works with. */
import { setTimeout as delay } from "node:timers/promises";
import type { LoadedConfig } from "../../config/load-config.ts";
import { createHub } from "../../hub/create.ts";
import type { Hub } from "../../hub/hub.ts";
import type { Invocation } from "../command.ts";

/** A turn does not begin before its tools are there, within reason. */
const WAIT_MS = 10_000;

/** Does not wait for servers. */
export async function openAgentHub(invocation: Invocation, config: LoadedConfig): Promise<Hub> {
  const { env, out, flags, cwd } = invocation;
  const role = flags.text("role");
  const hub = await createHub(config, {
    wait: false,
    // The agent's session answers what servers ask.
    rootsOnRequest: true,
    workspaceDir: cwd,
    door: "cli",
    env,
    redactor: out.redactor,
    role,
  });
  const tell = ({ server, message }: ReturnType<Hub["warnings"]>[number]): void =>
    out.warn(server === undefined ? message : `${server}: ${message}`);
  hub.warnings().forEach(tell);
  hub.on("warning", tell);
  return hub;
}

/** Resolves when every server is up or has failed, or when it has taken long enough; says then which are not there. */
export async function awaitServers(hub: Hub, { out }: Invocation, signal: AbortSignal): Promise<void> {
  const late = (): string[] => hub.servers().flatMap(({ id, state }) => (state === "connecting" ? [id] : []));
  if (late().length > 0) out.transient(`connecting ${late().join(", ")} …`);
  const patience = AbortSignal.any([signal, AbortSignal.timeout(WAIT_MS)]);
  const over = delay(WAIT_MS * 2, undefined, { signal: patience }).catch(() => {});
  await Promise.race([hub.settled(), over]);
  out.transient("");
  if (signal.aborted) return;
  for (const { id, state, status, lastError } of hub.servers()) {
    if (status === "connected" || state === "idle" || state === "disabled") continue;
    out.note(`not connected: ${id}: ${lastError ?? "it joins when it is ready"}`);
  }
}
