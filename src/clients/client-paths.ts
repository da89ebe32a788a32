/** The folders in which programs keep their configuration, on each system. */
import { posix, win32 } from "node:path";
import type { ClientFile, ClientEnvironment, ClientScope } from "./agent-client.ts";

/** The path functions of the client's platform, which may differ from this one. */
export function pathsOf(place: ClientEnvironment): typeof posix {
  return place.platform === "win32" ? win32 : posix;
}

export function inHome(place: ClientEnvironment, ...parts: string[]): string {
  return pathsOf(place).join(place.home, ...parts);
}

export function inProject(place: ClientEnvironment, ...parts: string[]): string {
  return pathsOf(place).join(place.projectDir, ...parts);
}

/** The path in an environment variable; undefined if it is not set or blank. */
export function fromEnv(place: ClientEnvironment, name: string): string | undefined {
  const value = place.env[name]?.trim();
  if (value === undefined || value === "") return undefined;
  const tilde = /^~(?=$|[/\\])/.exec(value);
  return tilde === null ? pathsOf(place).resolve(place.projectDir, value) : inHome(place, value.slice(1));
}

/** `~/.config`, on Windows and macOS too, for programs that follow the XDG rules everywhere. */
export function inConfigHome(place: ClientEnvironment, ...parts: string[]): string {
  const { isAbsolute, join } = pathsOf(place);
  const wanted = place.env["XDG_CONFIG_HOME"]?.trim() ?? "";
  // The XDG specification says to ignore a relative path.
  return isAbsolute(wanted) ? join(wanted, ...parts) : inHome(place, ".config", ...parts);
}

export function inAppData(place: ClientEnvironment, ...parts: string[]): string {
  return pathsOf(place).join(fromEnv(place, "APPDATA") ?? inHome(place, "AppData", "Roaming"), ...parts);
}

export function inLocalAppData(place: ClientEnvironment, ...parts: string[]): string {
  return pathsOf(place).join(fromEnv(place, "LOCALAPPDATA") ?? inHome(place, "AppData", "Local"), ...parts);
}

/** The folder for the data of desktop programs on each platform. */
export function inAppSupport(place: ClientEnvironment, ...parts: string[]): string {
  if (place.platform === "win32") return inAppData(place, ...parts);
  if (place.platform === "darwin") return inHome(place, "Library", "Application Support", ...parts);
  return inConfigHome(place, ...parts);
}

export function userFiles(...paths: string[]): ClientFile[] {
  return paths.map((path) => ({ scope: "user", path }));
}

export function projectFiles(...paths: string[]): ClientFile[] {
  return paths.map((path) => ({ scope: "project", path }));
}

/** Skill folders below the home or the project, written with forward slashes. */
export function skillFolders(
  place: ClientEnvironment,
  scope: ClientScope,
  folders: { readonly user: readonly string[]; readonly project: readonly string[] },
): string[] {
  const inside = scope === "user" ? inHome : inProject;
  return folders[scope].map((folder) => inside(place, ...folder.split("/")));
}
