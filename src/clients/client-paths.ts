/** The folders in which programs keep their configuration, on each system. */
import { readdirSync } from "node:fs";
import { posix, win32 } from "node:path";
import type { ClientFile, ClientEnvironment, ClientScope } from "./agent-client.ts";

/** The path functions of the client's platform, which may differ from this one. */
export function pathsOf(machine: ClientEnvironment): typeof posix {
  return machine.platform === "win32" ? win32 : posix;
}

export function inHome(machine: ClientEnvironment, ...parts: string[]): string {
  return pathsOf(machine).join(machine.home, ...parts);
}

export function inProject(machine: ClientEnvironment, ...parts: string[]): string {
  return pathsOf(machine).join(machine.projectDir, ...parts);
}

/** The path in an environment variable; undefined if it is not set or blank. */
export function fromEnv(machine: ClientEnvironment, name: string): string | undefined {
  const value = machine.env[name]?.trim();
  if (value === undefined || value === "") return undefined;
  const tilde = /^~(?=$|[/\\])/.exec(value);
  return tilde === null ? pathsOf(machine).resolve(machine.projectDir, value) : inHome(machine, value.slice(1));
}

/** `~/.config`, on Windows and macOS too, for programs that follow the XDG rules everywhere. */
export function inConfigHome(machine: ClientEnvironment, ...parts: string[]): string {
  const { isAbsolute, join } = pathsOf(machine);
  const wanted = machine.env["XDG_CONFIG_HOME"]?.trim() ?? "";
  // The XDG specification says to ignore a relative path.
  return isAbsolute(wanted) ? join(wanted, ...parts) : inHome(machine, ".config", ...parts);
}

export function inAppData(machine: ClientEnvironment, ...parts: string[]): string {
  return pathsOf(machine).join(fromEnv(machine, "APPDATA") ?? inHome(machine, "AppData", "Roaming"), ...parts);
}

export function inLocalAppData(machine: ClientEnvironment, ...parts: string[]): string {
  return pathsOf(machine).join(fromEnv(machine, "LOCALAPPDATA") ?? inHome(machine, "AppData", "Local"), ...parts);
}

/** The folder for the data of desktop programs on each platform. */
export function inAppSupport(machine: ClientEnvironment, ...parts: string[]): string {
  if (machine.platform === "win32") return inAppData(machine, ...parts);
  if (machine.platform === "darwin") return inHome(machine, "Library", "Application Support", ...parts);
  return inConfigHome(machine, ...parts);
}

/** A path below the home or the project, with forward slashes, or a function for paths elsewhere. */
type Place = string | ((machine: ClientEnvironment) => string | readonly string[] | undefined);

interface Places {
  readonly user: readonly Place[];
  readonly project?: readonly Place[];
}

export function filesAt(places: Places): (machine: ClientEnvironment) => ClientFile[] {
  const inScope = (machine: ClientEnvironment, scope: ClientScope): ClientFile[] =>
    resolvePlaces(machine, scope, places).map((path) => ({ scope, path }));
  return (machine) => [...inScope(machine, "user"), ...inScope(machine, "project")];
}

export function skillsAt(places: Places): (machine: ClientEnvironment, scope: ClientScope) => string[] {
  return (machine, scope) => resolvePlaces(machine, scope, places);
}

function resolvePlaces(machine: ClientEnvironment, scope: ClientScope, places: Places): string[] {
  const inside = scope === "user" ? inHome : inProject;
  return (places[scope] ?? []).flatMap((place) =>
    typeof place === "string" ? inside(machine, ...place.split("/")) : (place(machine) ?? []),
  );
}

/** A path below a folder that depends on the machine. */
export function below(
  folder: (machine: ClientEnvironment) => string,
  ...parts: string[]
): (machine: ClientEnvironment) => string {
  return (machine) => pathsOf(machine).join(folder(machine), ...parts);
}

/** Names of the YAML and JSON files in a folder, sorted; none if it cannot be read. */
export function settingsFilesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
      .filter((name) => /\.(?:ya?ml|json)$/.test(name))
      .toSorted();
  } catch {
    return [];
  }
}
