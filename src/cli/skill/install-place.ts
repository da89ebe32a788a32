/** What `skill install` and `skill remove` share: where they work, and for whom. */
import { existsSync } from "node:fs";
import type { AgentClient } from "../../clients/client.ts";
import { loadConfig } from "../../config/load-config.ts";
import { type InstallPlace, installPlace } from "../../hub/install/install-place.ts";
import type { SkillRegistry } from "../../skills/registry/registry.ts";
import { findClient } from "../clients/find-client.ts";
import type { Invocation } from "../command.ts";
import { loadForCommand } from "../command-config.ts";
import { targetFile } from "../config-target.ts";

/** A config that was named and is not there yet is one without servers. */
export async function placeFor(invocation: Invocation, registry: SkillRegistry): Promise<InstallPlace> {
  const { env, cwd } = invocation;
  const configFile = targetFile(invocation);
  const config = existsSync(configFile) ? await loadForCommand(invocation) : await loadConfig({ env, cwd, config: {} });
  return installPlace({ env, cwd, configFile, config, registry });
}

export function chosenClients({ flags }: Invocation): AgentClient[] {
  return [...new Set(namesIn(flags.text("client")).map(findClient))];
}

export function namesIn(text: string | undefined): string[] {
  return (text ?? "")
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");
}
