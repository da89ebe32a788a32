/** The config of a command; apart from the hub, so that commands which only edit it start quickly. */
import type { LoadedConfig } from "../config/load-config.ts";
import type { Invocation } from "./command.ts";
import { loadAsked, type LoadingOptions, showWarnings } from "./load-asked.ts";
import { recoverKilled } from "./recover-install.ts";

/** The config that the command line names or that is found, with its warnings shown. */
export async function loadForCommand(invocation: Invocation, options: LoadingOptions = {}): Promise<LoadedConfig> {
  const config = await loadQuietly(invocation, options);
  showWarnings(invocation, config.warnings);
  return config;
}

export async function loadQuietly(invocation: Invocation, options: LoadingOptions = {}): Promise<LoadedConfig> {
  await recoverKilled(invocation);
  return loadAsked(invocation, options);
}
