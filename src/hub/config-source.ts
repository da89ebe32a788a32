/** Where the config of a hub comes from, at the start and again later. */
import { loadConfig, type LoadedConfig } from "../config/load-config.ts";
import type { ConfigInput } from "../model/config.ts";
import { ToolcribError } from "../model/errors.ts";

/** A path of a config file in any dialect, a config as an object, or one already loaded. */
export type ConfigSource = string | ConfigInput | LoadedConfig;

export interface ConfigPlace {
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  readonly home: string;
  /** By path: what counts instead of a config file that cannot be written to. */
  readonly texts?: ReadonlyMap<string, string>;
}

/** Without a source it is looked for as the command line does. */
export async function loadFrom(source: ConfigSource | undefined, place: ConfigPlace): Promise<LoadedConfig> {
  if (source === undefined) return loadConfig(place);
  if (typeof source === "string") return loadConfig({ ...place, file: source });
  return isLoaded(source) ? source : loadConfig({ ...place, config: source });
}

/** The same file, whatever else might be found by now. */
export async function loadAgain({ file, inCode }: LoadedConfig, place: ConfigPlace): Promise<LoadedConfig> {
  if (inCode) {
    throw new ToolcribError("invalid_arguments", "This hub's config was given in code and stands in no file.", {
      hint: "Give the new config: hub.reload({ … }).",
    });
  }
  return loadConfig(file === null ? place : { ...place, file });
}

/** `servers` as a list of specs is what only a loaded config has. */
function isLoaded(source: ConfigInput | LoadedConfig): source is LoadedConfig {
  return "baseDir" in source && "servers" in source;
}
