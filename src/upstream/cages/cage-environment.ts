/** The environment inside a bubblewrap cage: what the spec names, and a minimum that fits the cage. */
import { isWithin } from "./find-program.ts";
import { CAGE_HOME } from "./system-mounts.ts";

/** Of the minimal environment these speak of the user, who is another one in there. */
const OWN: Readonly<Record<string, string>> = {
  HOME: CAGE_HOME,
  USER: "cage",
  LOGNAME: "cage",
  SHELL: "/bin/sh",
  TMPDIR: "/tmp",
};
const SYSTEM = ["/usr", "/bin", "/sbin", "/nix/store"];

/**
 * @param env What the program would have without a cage.
 * @param base The hub's own: what equals it was not named by the spec.
 * @param seen Paths besides the system that are there inside.
 */
export function cageEnvironment(
  env: Readonly<Record<string, string>>,
  base: NodeJS.ProcessEnv,
  seen: readonly string[],
): Record<string, string> {
  const inside: Record<string, string> = { ...env };
  for (const [name, value] of Object.entries(OWN)) {
    if (env[name] === undefined || env[name] === base[name]) inside[name] = value;
  }
  if (env["PATH"] === base["PATH"]) inside["PATH"] = pathInside(env["PATH"], seen);
  return inside;
}

/** Folders that are not there would only tell of the machine. */
function pathInside(path: string | undefined, seen: readonly string[]): string {
  const isSeen = (folder: string): boolean =>
    [...SYSTEM, ...seen].some((each) => isWithin(folder, each)) || seen.some((each) => isWithin(each, folder));
  const kept = (path ?? "").split(":").filter((folder) => folder.startsWith("/") && isSeen(folder));
  return [...new Set([...kept, "/usr/local/bin", "/usr/bin", "/bin"])].join(":");
}
