/** The config of a command; apart from the hub, so that commands which only edit it start quickly. */
import { renderDiagnostic } from "../config/diagnostics.ts";
import { loadConfig, type LoadedConfig } from "../config/load-config.ts";
import type { Invocation } from "./command.ts";
import { recoverKilled } from "./recover-install.ts";

/** The config that the command line names or that is found, with its warnings shown. */
export async function loadForCommand(invocation: Invocation): Promise<LoadedConfig> {
  const config = await loadQuietly(invocation);
  for (const warning of config.warnings) invocation.out.warn(renderDiagnostic(warning));
  return config;
}

export async function loadQuietly(invocation: Invocation): Promise<LoadedConfig> {
  const { flags, env, cwd } = invocation;
  await recoverKilled(invocation);
  const file = flags.text("config");
  return loadConfig({ env, cwd, ...(file === undefined ? {} : { file }) });
}
