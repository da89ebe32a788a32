/** What of the machine a cage lets in, for every kind of cage: named by the operator, there, and nothing of our secrets. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { ToolcribError } from "../../model/errors.ts";
import type { CagedProgram, CageSettings } from "./cage.ts";
import { isWithin, realPath } from "./find-program.ts";
import { linkWithin } from "./link-within.ts";

export interface NamedPath {
  readonly path: string;
  /** What it was named as, for messages: `sandbox.read`. */
  readonly key: string;
  readonly writable: boolean;
}

export interface CageMount {
  /** Where it is seen inside. */
  readonly path: string;
  /** What is mounted there: the same without links, as it was checked. */
  readonly source: string;
  readonly writable: boolean;
}

/** What `read` and `write` name, and `cwd`, which can be read. Throws for a `cwd` that the operator did not choose. */
export function namedPaths(settings: CageSettings, { cwd }: Pick<CagedProgram, "cwd">): NamedPath[] {
  const named = [
    ...settings.read.map((path) => ({ path, key: "`sandbox.read`", writable: false })),
    ...settings.write.map((path) => ({ path, key: "`sandbox.write`", writable: true })),
  ];
  if (cwd === undefined || named.some(({ path }) => isWithin(cwd, path))) return named;
  checkFolder(cwd, settings.ownFolder);
  return [...named, { path: cwd, key: "`cwd`", writable: false }];
}

/** Who describes a server that is not the operator's must not have any folder of the machine opened to it. */
function checkFolder(cwd: string, own: string | null | undefined): void {
  if (own === undefined || (own !== null && isWithin(realPath(cwd), realPath(own)))) return;
  throw refused(
    `\`cwd\` is ${cwd}, which its sandbox does not let in: the server was not described by whoever runs this hub, and ${
      own === null ? "it has no folder of its own" : `its own folder is ${own}`
    }.`,
    "Name the folder in `sandbox.read` if it should see it, or leave `cwd` out.",
  );
}

/** All of them checked, folders before what is in them, so that the closer name decides. */
export function checkedMounts(named: readonly NamedPath[], home: string): CageMount[] {
  const writable = named.filter((each) => each.writable).map(({ path }) => realPath(path));
  const chosen = new Map<string, CageMount>();
  for (const each of named) {
    const { path } = each;
    checkNamedPath(each, home);
    checkNoSettings(each);
    checkNoLink(each, writable);
    if (each.writable || chosen.get(path)?.writable !== true) {
      chosen.set(path, { path, source: realPath(path), writable: each.writable });
    }
  }
  return [...chosen.values()].toSorted((one, other) => one.path.length - other.path.length);
}

/** What an earlier run could write may be a link by now, and would bring in whatever it points to. */
function checkNoLink({ path, key }: NamedPath, writable: readonly string[]): void {
  const link = linkWithin(path, writable);
  if (link === undefined) return;
  throw refused(
    `${key} names ${path}: on the way there ${link} is a link, and lies where the program may write.`,
    "Name what it points to, or put a real folder there.",
  );
}

function checkNoSettings({ path, key, writable }: NamedPath): void {
  if (!writable || !isWithin(realPath(path), "/sys")) return;
  throw refused(
    `${key} names ${path}: the settings of the kernel cannot be let in for writing.`,
    "Name it in `sandbox.read` if the program only reads it.",
  );
}

/** Throws for a path that no cage may be given. */
function checkNamedPath({ path, key }: Omit<NamedPath, "writable">, home: string): void {
  if (!existsSync(path)) {
    throw refused(`${key} names ${path}, which does not exist.`, "Create it, or correct the path.");
  }
  const [real, ours] = [realPath(path), realPath(home)];
  if (real === "/proc" || isWithin(real, "/proc")) {
    throw refused(
      `${key} names ${path}: the processes of this machine cannot be let in.`,
      "The cage has its own /proc.",
    );
  }
  // A skill's own folder is what its server is run from.
  const isSkill = isWithin(real, join(ours, "skills")) && real !== join(ours, "skills");
  if (isWithin(ours, real) || (isWithin(real, ours) && !isSkill)) {
    throw refused(
      `${key} names ${path}, through which the program would see Toolcrib's own folder ${home} and the secrets in it.`,
      "Name the folders in it that the program needs, one by one.",
    );
  }
}

function refused(message: string, hint: string): ToolcribError {
  return new ToolcribError("invalid_config", message, { hint, details: { sent: false } });
}
