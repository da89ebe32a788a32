/** The folders in which programs keep their configuration, on each system. */
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

export function userFiles(...paths: string[]): ClientFile[] {
  return paths.map((path) => ({ scope: "user", path }));
}

export function projectFiles(...paths: string[]): ClientFile[] {
  return paths.map((path) => ({ scope: "project", path }));
}

/** Skill folders below the home or the project, written with forward slashes. */
export function skillFolders(
  machine: ClientEnvironment,
  scope: ClientScope,
  folders: { readonly user: readonly string[]; readonly project: readonly string[] },
): string[] {
  const inside = scope === "user" ? inHome : inProject;
  return folders[scope].map((folder) => inside(machine, ...folder.split("/")));
}
