/** Waits only as long as it takes until the wanted name is there, whichever server brings it. */
import { NamePattern } from "../catalog/name-pattern.ts";
import type { View } from "../hub/view.ts";
import type { Capability } from "../model/capability.ts";
import { ToolcribError } from "../model/errors.ts";
import type { RunningHub } from "./running-hub.ts";

/**
 * undefined where no reachable server has it; then the hub, asked for it, says why.
 * Throws `server_unavailable` where a server that is down may have it.
 */
export async function findCapability<C extends Capability>(
  running: RunningHub,
  name: string,
  among: (view: View) => readonly C[],
): Promise<C | undefined> {
  const { hub } = running;
  const find = (): C | undefined => among(hub.view(hub.session)).find((capability) => capability.name === name);
  running.connectAuto();
  const found = await running.until(find);
  if (found !== undefined) return found;
  const template = hub.config.config.tools.naming;
  const candidates = hub.config.servers.filter((spec) => new NamePattern(template, spec.id, spec.toolPrefix).couldGive(name));
  // Servers that connect only when asked to are asked now, if the name can be theirs.
  running.connect(candidates.filter((spec) => spec.enabled).map((spec) => spec.id));
  const late = await running.until(find);
  if (late !== undefined) return late;
  assertReachable(running, new Set(candidates.map((spec) => spec.id)));
  return undefined;
}

/** A URI does not tell whose it is, so servers that are down are told of and the hub decides. */
export async function findResource(running: RunningHub, uri: string, tell: (text: string) => void): Promise<void> {
  const { hub } = running;
  running.connectAuto();
  const found = await running.until(() => hub.view(hub.session).resources.find((resource) => resource.name === uri));
  if (found !== undefined) return;
  for (const { info, reason } of running.unreachable()) tell(`not connected: ${info.id}: ${reason}`);
}

function assertReachable(running: RunningHub, candidates: ReadonlySet<string>): void {
  const down = running.unreachable().filter(({ info }) => candidates.has(info.id));
  const [first] = down;
  if (first === undefined) return;
  throw new ToolcribError("server_unavailable", `The server "${first.info.id}" is not connected: ${first.reason}`, {
    hint: "toolcrib doctor checks it.",
    details: { servers: down.map(({ info }) => info.id) },
  });
}
