/** What `skill install` and `skill remove` share: where they work, and for whom. */
import { existsSync } from "node:fs";
import type { AgentClient } from "../../clients/client.ts";
import { renderDiagnostic } from "../../config/diagnostics.ts";
import { loadConfig } from "../../config/load-config.ts";
import { type InstallPlace, installPlace } from "../../hub/install/install-place.ts";
import type { SkillRegistry } from "../../skills/registry/registry.ts";
import { findClient } from "../clients/find-client.ts";
import type { Invocation } from "../command.ts";
import { ownFile } from "../config-target.ts";

/**
 * What a skill brings goes into the user's own config or the one that was named, never into a project's. One that is not there
 * yet is one without servers.
 */
export async function placeFor(invocation: Invocation, registry: SkillRegistry): Promise<InstallPlace> {
  const { env, cwd, out } = invocation;
  const configFile = ownFile(invocation);
  const config = await loadConfig({ env, cwd, ...(existsSync(configFile) ? { file: configFile } : { config: {} }) });
  for (const warning of config.warnings) out.warn(renderDiagnostic(warning));
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
