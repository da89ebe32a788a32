/** Looks a program up on PATH the way this platform would, without a shell. */
import { accessSync, constants, statSync } from "node:fs";
import { posix, win32 } from "node:path";
import { variableOf } from "./variable.ts";

/** What a lookup needs to know of the machine. */
export interface BinPlace {
  readonly platform: NodeJS.Platform;
  readonly env: NodeJS.ProcessEnv;
}

/**
 * The path of the program, or undefined. A name with a folder in it is never found: whether it is there would depend
 * on the folder that the check happens to run in.
 */
export function findBin(
  name: string,
  { platform, env }: BinPlace,
  isProgram: (path: string) => boolean = isProgramHere,
): string | undefined {
  const windows = platform === "win32";
  const paths = windows ? win32 : posix;
  if (name === "" || name === "." || name === ".." || /[/\\\0:]/.test(name)) return undefined;
  const names = windows ? withEndings(name, variableOf(env, "PATHEXT", platform)) : [name];
  for (const entry of (variableOf(env, "PATH", platform) ?? "").split(paths.delimiter)) {
    // Windows allows quotes around an entry.
    const folder = windows ? entry.replaceAll('"', "") : entry;
    // For the same reason as above; an empty entry means the current folder.
    if (!paths.isAbsolute(folder)) continue;
    for (const candidate of names) {
      const path = paths.join(folder, candidate);
      if (isProgram(path)) return path;
    }
  }
  return undefined;
}

function withEndings(name: string, given: string | undefined): string[] {
  const endings = (given || ".COM;.EXE;.BAT;.CMD").split(";").filter((ending) => ending !== "");
  const whole = endings.some((ending) => name.toLowerCase().endsWith(ending.toLowerCase()));
  return [...(whole ? [name] : []), ...endings.map((ending) => name + ending.toLowerCase())];
}

function isProgramHere(path: string): boolean {
  try {
    if (!statSync(path).isFile()) return false;
    // On Windows this asks only whether it is there; the ending has said that it is a program.
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
