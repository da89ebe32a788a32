/** How another program reaches this Toolcrib: the command that starts it over stdio, and the token for its URL. */
import { existsSync, realpathSync } from "node:fs";
import { delimiter, dirname, join, relative, resolve } from "node:path";
import { homeConfigFile, toolcribHome } from "../../config/find-config.ts";
import type { HttpConfig } from "../../model/config.ts";
import type { LoadedConfig } from "../../model/loaded-config.ts";
import { specStrings } from "../../secrets/resolve-spec.ts";
import { findReferences, type Reference, tryParseReferences } from "../../secrets/secret-references.ts";

export interface GatewayOptions {
  /** This server alone instead of the whole catalog. */
  readonly server?: string;
  /** Narrows the client to this role. */
  readonly role?: string;
  /** The id of the client, where tool names have to suit it whatever it calls itself. */
  readonly client?: string | undefined;
  /** The config to use; the one in Toolcrib's home if absent. It is always named: a client starts programs in any folder. */
  readonly configFile?: string | null;
  /** `process.env` if absent. */
  readonly env?: NodeJS.ProcessEnv;
}

export interface GatewayCommand {
  readonly command: string;
  readonly args: string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly startsHub: true;
}

/** A token of `http.auth` that a client may use. */
interface ClientToken {
  /** The variable that it is in, if it is in one. */
  readonly env?: string | undefined;
  /** That it is bound to. */
  readonly role?: string | undefined;
}

/** One that lets a client call tools, in this role if one is given; in a variable if possible, and with the fewest rights. */
export function findClientToken(auth: HttpConfig["auth"], role?: string): ClientToken | undefined {
  const usable = (auth?.tokens ?? [])
    .filter(({ scopes }) => scopes.includes("admin") || scopes.includes("call"))
    .filter((each) => role === undefined || each.role === undefined || each.role === role)
    .toSorted((a, b) => Number(a.scopes.includes("admin")) - Number(b.scopes.includes("admin")))
    .map((each) => ({ env: onlyVariable(each.token), role: each.role }));
  return usable.find(({ env }) => env !== undefined) ?? usable[0];
}

function onlyVariable(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const parts = tryParseReferences(text) ?? [];
  const [only] = parts;
  return parts.length === 1 && typeof only === "object" ? variableOf(only) : undefined;
}

/** The environment variables that a hub with this config cannot do without, by the servers that name them. */
export function neededVariables({ servers }: Pick<LoadedConfig, "servers">): Map<string, string[]> {
  const needed = new Map<string, string[]>();
  for (const spec of servers.filter(({ enabled }) => enabled)) {
    for (const reference of specStrings(spec).flatMap(({ text }) => findReferences(text))) {
      const name = variableOf(reference);
      if (name === undefined || (reference.kind === "variable" && reference.fallback !== undefined)) continue;
      const ids = needed.get(name) ?? [];
      if (!ids.includes(spec.id)) needed.set(name, [...ids, spec.id]);
    }
  }
  return needed;
}

function variableOf(reference: Reference): string | undefined {
  if (reference.kind === "variable") return reference.name;
  return reference.provider === "env" ? reference.path : undefined;
}

/**
 * Programs with a window often have a much shorter PATH than a terminal, so the command is made of absolute paths. The
 * plain word `toolcrib` is used only where it and Node are in folders that every program searches.
 */
export function gatewayCommand(options: GatewayOptions = {}): GatewayCommand {
  const { server, role, client, configFile = null, env = process.env } = options;
  const home = toolcribHome(env);
  const only = server === undefined ? [] : ["--server", server];
  const as = role === undefined ? [] : ["--role", role];
  const names = client === undefined ? [] : ["--client", client];
  const args = ["mcp", ...only, ...as, ...names, "--config", resolve(configFile ?? homeConfigFile(home))];
  const bin = ownBin();
  const isDefaultHome = home === toolcribHome({ ...env, TOOLCRIB_HOME: undefined });
  return {
    ...(isOnSystemPath(bin, env) ? { command: "toolcrib", args } : { command: process.execPath, args: [bin, ...args] }),
    ...(isDefaultHome ? {} : { env: { TOOLCRIB_HOME: home } }),
    startsHub: true,
  };
}

/** The script that starts this installation, from the checkout as well as from the built package. */
function ownBin(): string {
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

/** The shell command that starts this Toolcrib with this home, ready to be copied into a terminal: in the current folder, or in any. */
export function shellCommand(env: NodeJS.ProcessEnv, where: "here" | "anywhere"): string {
  const home = toolcribHome(env);
  const isDefaultHome = home === toolcribHome({ ...env, TOOLCRIB_HOME: undefined });
  const isInstalled = (env["PATH"] ?? "").split(delimiter).some((folder) => existsSync(join(folder, "toolcrib")));
  const program = isInstalled
    ? "toolcrib"
    : `node ${shellQuoted(where === "here" ? shortestPath(ownBin()) : ownBin())}`;
  return isDefaultHome ? program : `TOOLCRIB_HOME=${shellQuoted(home)} ${program}`;
}

function shortestPath(path: string): string {
  const fromHere = relative(process.cwd(), path);
  return fromHere.startsWith("..") ? path : fromHere;
}

export function shellQuoted(text: string): string {
  return /^[\w./:@%+,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
