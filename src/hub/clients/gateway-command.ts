/** The command with which another program starts this Toolcrib over stdio. */
import { existsSync, realpathSync } from "node:fs";
import { delimiter, dirname, join, resolve } from "node:path";
import { homeConfigFile, toolcribHome } from "../../config/find-config.ts";

export interface GatewayOptions {
  /** This server alone instead of the whole catalog. */
  readonly server?: string;
  /** The config to use; the one in Toolcrib's home if absent. It is always named: a client starts programs in any folder. */
  readonly configFile?: string | null;
  /** `process.env` if absent. */
  readonly env?: NodeJS.ProcessEnv;
}

export interface GatewayCommand {
  readonly command: string;
  readonly args: string[];
  readonly env?: Readonly<Record<string, string>>;
}

/**
 * Programs with a window often have a much shorter PATH than a terminal, so the command is made of absolute paths. The
 * plain word `toolcrib` is used only where it and Node are in folders that every program searches.
 */
export function gatewayCommand(options: GatewayOptions = {}): GatewayCommand {
  const { server, configFile = null, env = process.env } = options;
  const home = toolcribHome(env);
  const only = server === undefined ? [] : ["--server", server];
  const args = ["mcp", ...only, "--config", resolve(configFile ?? homeConfigFile(home))];
  const bin = ownBin();
  const isDefaultHome = home === toolcribHome({ ...env, TOOLCRIB_HOME: undefined });
  return {
    ...(isOnSystemPath(bin, env) ? { command: "toolcrib", args } : { command: process.execPath, args: [bin, ...args] }),
    ...(isDefaultHome ? {} : { env: { TOOLCRIB_HOME: home } }),
  };
}

/** The script that starts this installation, from the checkout as well as from the built package. */
export function ownBin(): string {
  for (let folder = import.meta.dirname; folder !== dirname(folder); folder = dirname(folder)) {
    const bin = join(folder, "bin", "toolcrib.js");
    if (existsSync(bin)) return bin;
  }
  return resolve(process.argv[1] ?? "toolcrib");
}

/** On a Mac only these are in the PATH of what the Dock starts. */
const SYSTEM_FOLDERS = process.platform === "darwin" ? ["/usr/bin", "/bin"] : ["/usr/local/bin", "/usr/bin", "/bin"];

function isOnSystemPath(bin: string, env: NodeJS.ProcessEnv): boolean {
  // There the word alone is a script, which programs do not start without a shell.
  if (process.platform === "win32") return false;
  const folders = (env["PATH"] ?? "").split(delimiter);
  const first = folders.find((folder) => existsSync(join(folder, "toolcrib")));
  if (first === undefined || !SYSTEM_FOLDERS.includes(first)) return false;
  if (!SYSTEM_FOLDERS.some((folder) => realPathOf(join(folder, "node")) === realPathOf(process.execPath))) return false;
  return realPathOf(join(first, "toolcrib")) === realPathOf(bin);
}

function realPathOf(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}
