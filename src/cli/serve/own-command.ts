import { existsSync } from "node:fs";
import { delimiter, join, relative } from "node:path";
import { toolcribHome } from "../../config/find-config.ts";
import { ownBin } from "../../hub/clients/gateway-command.ts";

/** How a person starts this Toolcrib for this home at a terminal: what is printed must work when it is copied. */
export function ownCommand(env: NodeJS.ProcessEnv): string {
  const home = toolcribHome(env);
  const isDefaultHome = home === toolcribHome({ ...env, TOOLCRIB_HOME: undefined });
  const isInstalled = (env["PATH"] ?? "").split(delimiter).some((folder) => existsSync(join(folder, "toolcrib")));
  const program = isInstalled ? "toolcrib" : `node ${quoted(shorter(ownBin()))}`;
  return isDefaultHome ? program : `TOOLCRIB_HOME=${quoted(home)} ${program}`;
}

function shorter(path: string): string {
  const fromHere = relative(process.cwd(), path);
  return fromHere.startsWith("..") ? path : fromHere;
}

function quoted(text: string): string {
  return /^[\w./:@%+,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
