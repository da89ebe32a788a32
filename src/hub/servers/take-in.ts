/**
 * `etc/mcp-servers.json` of the home: what stands there goes into the store once, and from then on the store's entry counts.
 * A server that was removed afterwards does not come back.
 */
import { join, resolve } from "node:path";
import { expandTilde, userHome } from "../../config/find-config.ts";
import type { LoadedConfig } from "../../config/load-config.ts";
import { entryOfSpec } from "../../config/spec-entry.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { ServerSpec } from "../../model/server-spec.ts";
import type { Store } from "../../store/store.ts";
import type { ServerSecrets } from "./server-secrets.ts";

export interface TakeInOptions {
  readonly home: string;
  readonly env: NodeJS.ProcessEnv;
  readonly takesIn: boolean;
  readonly kept: ServerSecrets;
  readonly warn: (message: string) => void;
}

/** The servers of the config without those that the store answers for. */
export async function leaveTaken(
  config: LoadedConfig,
  store: Store,
  options: TakeInOptions,
): Promise<LoadedConfig["servers"]> {
  const file = join(options.home, "etc", "mcp-servers.json");
  if (isNamed(file, config, options.env)) return config.servers;
  const left: ServerSpec[] = [];
  for (const spec of config.servers) {
    const isOurs = spec.origin.file === file && spec.replaces === undefined;
    if (!isOurs || !(await isTaken(spec, file, store, options))) left.push(spec);
  }
  return left.length === config.servers.length ? config.servers : left;
}

/** Whoever names the file as a config or an import has servers of the user's own in it. */
function isNamed(file: string, { file: primary, config, baseDir }: LoadedConfig, env: NodeJS.ProcessEnv): boolean {
  return primary === file || config.import.some((item) => resolve(baseDir, expandTilde(item, userHome(env))) === file);
}

async function isTaken(
  spec: ServerSpec,
  file: string,
  { servers, settings }: Store,
  { takesIn, kept, warn }: TakeInOptions,
): Promise<boolean> {
  const mark = `mcp-servers.json:${spec.id}`;
  if ((await settings.get(mark)) !== undefined) return true;
  if ((await servers.get(spec.id)) === undefined) {
    if (!takesIn) return false;
    try {
      const { entry, undo } = await kept.secure(spec.id, entryOfSpec(spec));
      try {
        await servers.insert({ id: spec.id, entry, source: file });
      } catch (error) {
        await undo();
        // Another hub that starts now was quicker.
        if (!(error instanceof ToolcribError) || error.code !== "conflict") throw error;
      }
    } catch (error) {
      if (!(error instanceof ToolcribError)) throw error;
      warn(`The server "${spec.id}" of ${file} is not taken into the store, and used as it stands: ${error.message}`);
      return false;
    }
  }
  if (takesIn) await settings.setOnce(mark, file);
  return true;
}
