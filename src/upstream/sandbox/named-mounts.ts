/** The paths that a sandbox of any kind lets in: named by the operator, existing, and without our secrets. */
import { existsSync, lstatSync, readlinkSync, realpathSync, type Stats, statSync } from "node:fs";
import { homedir } from "node:os";
import { basename, dirname, isAbsolute, join, resolve } from "node:path";
import type { ToolcribError } from "../../model/errors.ts";
import { CERTIFICATE_NAMES } from "../stdio/child-environment.ts";
import { notSent } from "../wire.ts";
import type { SandboxDeps, SandboxedProgram, SandboxSettings } from "./sandbox-settings.ts";
import { findProgram, isExecutable } from "../../base/programs.ts";

export interface NamedPath {
  readonly path: string;
  /** The setting that named it, for messages: `sandbox.read`. */
  readonly key: string;
  readonly writable: boolean;
}

export interface SandboxMount {
  /** Where it is seen inside. */
  readonly path: string;
  /** The checked path without links, which is mounted there. */
  readonly source: string;
  readonly writable: boolean;
}

/** The part of a mount that decides who a program in a sandbox must be to use it. */
export type UserMount = Pick<SandboxMount, "source" | "writable">;

export const NOBODY_ID = 65_534;

export function isReadableByAll(found: Stats): boolean {
  const wanted = found.isDirectory() ? 0o005 : 0o004;
  return (found.mode & wanted) === wanted;
}

/** The paths of `read` and `write`, and `cwd`, which can be read. Throws for a `cwd` that the operator did not choose. */
export function namedPaths(settings: SandboxSettings, { cwd }: Pick<SandboxedProgram, "cwd">): NamedPath[] {
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
  throw mountRefused(
    `\`cwd\` is ${cwd}, which its sandbox does not let in: the server was not described by whoever runs this hub, and ${
      own === null ? "it has no folder of its own" : `its own folder is ${own}`
    }.`,
    "Name the folder in `sandbox.read` if it should see it, or leave `cwd` out.",
  );
}

/** All of them checked, folders before what is in them, so that the closer name decides. */
export function checkedMounts(
  named: readonly NamedPath[],
  { home, userHome = home, env }: Pick<SandboxDeps, "home" | "userHome" | "env">,
): SandboxMount[] {
  const writable = named.filter((each) => each.writable).map(({ path }) => realPath(path));
  const chosen = new Map<string, SandboxMount>();
  for (const each of named) {
    const { path } = each;
    for (const folder of new Set([home, userHome])) checkNamedPath(each, folder);
    checkNoSettings(each);
    checkNoCode(each, env);
    checkNoLink(each, writable);
    if (each.writable || chosen.get(path)?.writable !== true) {
      chosen.set(path, { path, source: realPath(path), writable: each.writable });
    }
  }
  return [...chosen.values()].toSorted((one, other) => one.path.length - other.path.length);
}

/** A path that an earlier run could write may be a link by now, and would let in its target. */
function checkNoLink({ path, key }: NamedPath, writable: readonly string[]): void {
  const link = linkWithin(path, writable);
  if (link === undefined) return;
  throw mountRefused(
    `${key} names ${path}: on the way there ${link} is a link, and lies where the program may write.`,
    "Name what it points to, or put a real folder there.",
  );
}

function checkNoSettings({ path, key, writable }: NamedPath): void {
  if (!writable || !isWithin(realPath(path), "/sys")) return;
  throw mountRefused(
    `${key} names ${path}: the settings of the kernel cannot be let in for writing.`,
    "Name it in `sandbox.read` if the program only reads it.",
  );
}

/** The next start of `bin/toolcrib.js` runs code from there outside of any sandbox, maybe without the variables. */
function checkNoCode({ path, key, writable }: NamedPath, env: NodeJS.ProcessEnv): void {
  if (!writable) return;
  const real = realPath(path);
  const { XDG_CACHE_HOME = "", LOCALAPPDATA = "" } = env;
  for (const caches of [XDG_CACHE_HOME, LOCALAPPDATA, join(homedir(), ".cache")].filter((each) => isAbsolute(each))) {
    const code = placeOf(join(caches, "toolcrib", "code"));
    if (!isWithin(code, real) && !isWithin(real, code)) continue;
    throw mountRefused(
      `${key} names ${path}, through which the program could write code that Toolcrib runs (${code}).`,
      "Name the folders in it that the program needs, one by one.",
    );
  }
}

/** The path without symbolic links, as far as it exists. */
function placeOf(path: string): string {
  const above = dirname(path);
  return existsSync(path) || above === path ? realPath(path) : join(placeOf(above), basename(path));
}

/** Throws for a path that no sandbox may be given. */
function checkNamedPath({ path, key }: Omit<NamedPath, "writable">, home: string): void {
  if (!existsSync(path)) {
    throw mountRefused(`${key} names ${path}, which does not exist.`, "Create it, or correct the path.");
  }
  const [real, ours] = [realPath(path), realPath(home)];
  if (real === "/proc" || isWithin(real, "/proc")) {
    throw mountRefused(
      `${key} names ${path}: the processes of this machine cannot be let in.`,
      "The sandbox has its own /proc.",
    );
  }
  // A skill's own folder is what its server is run from.
  const isSkill = isWithin(real, join(ours, "skills")) && real !== join(ours, "skills");
  if (isWithin(ours, real) || (isWithin(real, ours) && !isSkill)) {
    throw mountRefused(
      `${key} names ${path}, through which the program would see Toolcrib's own folder ${home} and the secrets in it.`,
      "Name the folders in it that the program needs, one by one.",
    );
  }
}

function mountRefused(message: string, hint: string): ToolcribError {
  return notSent("invalid_config", message, hint);
}

interface Certificates {
  readonly mounts: readonly SandboxMount[];
  /** The program's environment, without inherited variables that name what it cannot see: OpenSSL trusts no one then. */
  readonly env: Readonly<Record<string, string>>;
}

interface CertificateOptions {
  /** Whether it is there in the sandbox anyway. */
  readonly isVisible: (path: string) => boolean;
  /** The program runs as another user. */
  readonly asOther: boolean;
  /** The kinds that can be let in. Folders contain links, which may lead nowhere in an image. */
  readonly mountable: "all" | "files" | "none";
  /** Toolcrib's own folder. */
  readonly home: string;
}

/** The certificate authorities that inherited variables name. Never a folder that the user's own or Toolcrib's is in. */
export function certificateMounts(
  { env, inherited = [] }: Pick<SandboxedProgram, "env" | "inherited">,
  { isVisible, ...options }: CertificateOptions,
): Certificates {
  const inside: Record<string, string> = { ...env };
  const mounts = new Map<string, SandboxMount>();
  const names = inherited.filter((name) => CERTIFICATE_NAMES.some((each) => isSameName(each, name)));
  for (const name of names) {
    const paths = (env[name] ?? "").split(name === "SSL_CERT_DIR" ? ":" : "\0");
    const found = paths.map((path): SandboxMount | undefined => {
      if (!isVisible(path) && !canBeLetIn(path, options)) return undefined;
      return { path, source: realPath(path), writable: false };
    });
    if (found.includes(undefined)) delete inside[name];
    else for (const mount of found) if (mount !== undefined && !isVisible(mount.path)) mounts.set(mount.path, mount);
  }
  return { mounts: [...mounts.values()], env: inside };
}

function isSameName(one: string, other: string): boolean {
  return one === other || (one.startsWith("npm_") && one === other.toLowerCase());
}

function canBeLetIn(path: string, { mountable, asOther, home }: Omit<CertificateOptions, "isVisible">): boolean {
  if (mountable === "none") return false;
  const real = realPath(path);
  const found = path.startsWith("/") ? statSync(real, { throwIfNoEntry: false }) : undefined;
  if (found === undefined || !(found.isFile() || (found.isDirectory() && mountable === "all"))) return false;
  const isPrivate = [realPath(home), realPath(homedir())].some((each) => isWithin(each, real));
  if (isPrivate || isWithin(real, realPath(home)) || isWithin(real, "/proc")) return false;
  return !asOther || isOpenToAll(real);
}

/** Every user may get to it and read it. */
function isOpenToAll(path: string): boolean {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined || !isReadableByAll(found)) return false;
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    if (((statSync(folder, { throwIfNoEntry: false })?.mode ?? 0) & 0o001) === 0) return false;
    if (folder === dirname(folder)) return true;
  }
}

/** As many as the kernel follows. */
const MAX_LINKS = 40;

/**
 * The first link on the way to a path that lies in one of the folders, which are real paths. Step by step, because the
 * real path alone does not say where the links were.
 */
export function linkWithin(path: string, folders: readonly string[]): string | undefined {
  if (folders.length === 0) return undefined;
  let place = "/";
  let steps = stepsOf(path);
  for (let links = 0; steps.length > 0 && links <= MAX_LINKS;) {
    const [step = "", ...rest] = steps;
    const next = join(place, step);
    const facts = step === ".." ? undefined : lstatSync(next, { throwIfNoEntry: false });
    if (facts?.isSymbolicLink() !== true) {
      place = step === ".." ? dirname(place) : next;
      steps = rest;
      continue;
    }
    if (folders.some((folder) => isWithin(place, folder))) return next;
    links++;
    const target = readlinkSync(next);
    if (target.startsWith("/")) place = "/";
    steps = [...stepsOf(target), ...rest];
  }
  return undefined;
}

function stepsOf(path: string): string[] {
  return path.split("/").filter((step) => step !== "" && step !== ".");
}

/** Where `command` is, as the shell would find it; undefined if it is not there. Relative folders in PATH are not searched. */
export function findCommand(command: string, path = "/usr/bin:/bin", cwd: string = process.cwd()): string | undefined {
  if (!command.includes("/")) return findProgram(command, { env: { PATH: path } });
  const file = resolve(cwd, command);
  return isExecutable(file) ? file : undefined;
}

/** The path without symbolic links; the path itself where that cannot be known. */
export function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

/** Whether `inner` is `outer` or below it; both absolute. */
export function isWithin(inner: string, outer: string): boolean {
  return inner === outer || inner.startsWith(outer.endsWith("/") ? outer : `${outer}/`);
}
