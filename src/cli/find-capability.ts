/** Waits only as long as it takes until the wanted name is there, whichever server brings it. */
import { NamePattern } from "../catalog/name-pattern.ts";
import type { View } from "../hub/view.ts";
import type { Capability } from "../model/capability.ts";
import type { RunningHub } from "./running-hub.ts";

/** A server that cannot have the name by its prefix is worth this wait, but no more: names can be cut and hashed. */
const UNLIKELY_MS = 3000;

/**
 * Servers whose names can look like this are connected first, so that an unrelated one delays nothing.
 * undefined where no reachable server has it; then the hub, asked for it, says why.
 */
export async function findCapability<C extends Capability>(
  running: RunningHub,
  name: string,
  among: (view: View) => readonly C[],
): Promise<C | undefined> {
  const { hub } = running;
  const find = (): C | undefined => among(hub.view(hub.session)).find((capability) => capability.name === name);
  const template = hub.config.config.tools.naming;
  const candidates = hub.config.servers.filter(
    (spec) => spec.enabled && new NamePattern(template, spec.id, spec.toolPrefix).couldGive(name),
  );
  running.connect(candidates.map((spec) => spec.id));
  const found = await running.until(find);
  if (found !== undefined) return found;
  running.connectAuto();
  return running.until(find, UNLIKELY_MS);
}

/** A URI does not tell whose it is, so servers that are down are told of and the hub decides. */
export async function findResource(running: RunningHub, uri: string, tell: (text: string) => void): Promise<void> {
  const { hub } = running;
  running.connectAuto();
  const found = await running.until(() => hub.view(hub.session).resources.find((resource) => resource.name === uri));
  if (found !== undefined) return;
  for (const { info, reason } of running.unreachable()) tell(`not connected: ${info.id}: ${reason}`);
}
