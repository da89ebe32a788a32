/** Where the config of a hub comes from, at the start and again later. */
import { renderDiagnostic } from "../../config/config-document.ts";
import { loadConfig, UNTRUSTED } from "../../config/load-config.ts";
import type { ConfigInput } from "../../model/config.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { LoadedConfig } from "../../model/loaded-config.ts";

/** A path of a config file in any dialect, a config as an object, or one already loaded. */
export type ConfigSource = string | ConfigInput | LoadedConfig;

export interface ConfigLocation {
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  readonly home: string;
  /** By path: what counts instead of a config file that cannot be written to. */
  readonly texts?: ReadonlyMap<string, string>;
}

/** Without a source it is looked for as the command line does. */
export async function loadConfigFrom(source: ConfigSource | undefined, place: ConfigLocation): Promise<LoadedConfig> {
  if (source === undefined) return loadConfig(place);
  if (typeof source === "string") return loadConfig({ ...place, file: source });
  return isLoaded(source) ? source : loadConfig({ ...place, config: source });
}

/** The same files, whatever else might be found by now. A project config that is not trusted any more stays as it was. */
export async function reloadConfig(
  { file, inCode, searched, project }: LoadedConfig,
  place: ConfigLocation,
): Promise<LoadedConfig> {
  if (inCode) {
    throw new ToolcribError("invalid_arguments", "This hub's config was given in code and is in no file.", {
      hint: "Give the new config: hub.reload({ … }).",
    });
  }
  if (searched !== undefined) return loadConfig({ ...place, searched, inUse: project?.reading });
  return loadConfig(file === null ? place : { ...place, file });
}

/** `servers` as a list of specs is what only a loaded config has. */
function isLoaded(source: ConfigInput | LoadedConfig): source is LoadedConfig {
  return "baseDir" in source && "servers" in source;
}

/** Says that a project config was left out, or that an earlier version of it is in use. */
export function reportUntrusted({ warnings }: LoadedConfig, warn: (message: string) => void): void {
  for (const warning of warnings) if (warning.code === UNTRUSTED) warn(renderDiagnostic(warning));
}
