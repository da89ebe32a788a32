/** What of the machine a program itself needs to be started: its own file and, for what npm installed, its packages. */
import { closeSync, existsSync, openSync, readSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { findProgram, isWithin, realPath } from "./find-program.ts";
import { linkWithin } from "./link-within.ts";

export interface FoundProgram {
  /** As it is called; may be a link. */
  readonly path: string;
  /** To be seen read-only at the same place inside. */
  readonly mounts: readonly string[];
}

export interface ProgramPlace {
  /** PATH. */
  readonly path: string | undefined;
  /** Relative commands start from here, as they do without a cage. */
  readonly cwd?: string | undefined;
  /** Real paths of what the program may change: what stands there is its own word, and brings nothing in. */
  readonly writable: readonly string[];
}

/** Undefined if there is no such program. */
export function programMounts(command: string, { path, cwd, writable }: ProgramPlace): FoundProgram | undefined {
  const found = findProgram(command, path, cwd);
  if (found === undefined) return undefined;
  if (isChangeable(found, writable)) return { path: found, mounts: [found] };
  const mounts = new Set(mountsOf(found));
  // A script that begins with `#!/usr/bin/env node` needs that program too.
  const runner = interpreterOf(found);
  const foundRunner = runner === undefined ? undefined : findProgram(runner, path, cwd);
  if (foundRunner !== undefined && !isChangeable(foundRunner, writable)) {
    for (const mount of mountsOf(foundRunner)) mounts.add(mount);
  }
  return { path: found, mounts: [...mounts] };
}

/** Its file, or a link on the way to it. */
function isChangeable(program: string, writable: readonly string[]): boolean {
  const real = realPath(program);
  return writable.some((folder) => isWithin(real, folder)) || linkWithin(program, writable) !== undefined;
}

/**
 * Never the whole folder around `bin`: that of ~/bin or ~/.local/bin is full of other things. Of a place where npm
 * installs to, `bin` and `lib/node_modules`, by which npx works; of a project, its `node_modules`.
 */
function mountsOf(program: string): string[] {
  const real = realPath(program);
  const prefix = npmPrefix(program) ?? npmPrefix(real);
  if (prefix === undefined) {
    const [, packages] = /^(.+?\/node_modules)\//.exec(program) ?? /^(.+?\/node_modules)\//.exec(real) ?? [];
    return [...new Set([...(packages === undefined ? [] : [packages]), program, real])];
  }
  return [...new Set([join(prefix, "bin"), join(prefix, "lib", "node_modules"), program, real])];
}

function npmPrefix(program: string): string | undefined {
  const [, before] = /^(.+)\/lib\/node_modules\//.exec(program) ?? [];
  if (before !== undefined) return existsSync(join(before, "bin")) ? before : undefined;
  const folder = dirname(program);
  if (basename(folder) !== "bin") return undefined;
  const prefix = dirname(folder);
  return existsSync(join(prefix, "lib", "node_modules")) ? prefix : undefined;
}

function interpreterOf(program: string): string | undefined {
  const line = firstLine(program);
  const [, named, rest = ""] = /^#!\s*(\S+)\s*(.*)$/.exec(line) ?? [];
  if (named === undefined) return undefined;
  if (basename(named) !== "env") return named;
  return rest.split(/\s+/).find((word) => word !== "" && !word.startsWith("-") && !word.includes("="));
}

function firstLine(file: string): string {
  const buffer = Buffer.alloc(256);
  try {
    const handle = openSync(file, "r");
    try {
      const length = readSync(handle, buffer, 0, buffer.length, 0);
      return buffer.toString("latin1", 0, length).split("\n", 1)[0] ?? "";
    } finally {
      closeSync(handle);
    }
  } catch {
    // A program may be executable without being readable.
    return "";
  }
}
