/** Reads which files import which, type imports and dynamic imports included, without a parser of TypeScript. */
import { readdirSync, readFileSync } from "node:fs";
import { posix } from "node:path";
import { join } from "node:path";

/** Path of a file, with forward slashes, to the specifiers that it imports. */
export type ImportGraph = ReadonlyMap<string, readonly string[]>;

/** A statement starts its line; a mention in a comment starts with a star or slashes and is none. */
const STATEMENT = /^[ \t]*(?:import|export)\b(?:[^"'`;()]*?\bfrom)?\s*(["'])([^"']+)\1/gm;
const DYNAMIC = /\bimport\s*\(\s*(["'`])([^"'`]+)\1/g;

export function importsOf(text: string): string[] {
  return [STATEMENT, DYNAMIC].flatMap((pattern) =>
    [...text.matchAll(pattern)].map(([, , specifier = ""]) => specifier),
  );
}

/** The specifiers that are loaded together with the file: neither types nor what is imported later. */
function eagerImportsOf(text: string): string[] {
  return [...text.matchAll(STATEMENT)]
    .filter(([statement]) => !/^\s*(?:import|export)\s+type\b/.test(statement))
    .map(([, , specifier = ""]) => specifier);
}

/** The packages that are loaded with a file of a folder, Node's own left out, sorted. */
export function packagesLoadedWith(folder: string, files: readonly string[]): string[] {
  const packages = new Set<string>();
  const seen = new Set(files);
  for (const file of seen) {
    for (const specifier of eagerImportsOf(readFileSync(join(folder, file), "utf8"))) {
      const target = targetOf(file, specifier);
      if (target !== undefined) seen.add(target);
      else if (!specifier.startsWith("node:")) packages.add(specifier);
    }
  }
  return [...packages].toSorted();
}

export function readImportGraph(folder: string): ImportGraph {
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"));
  return new Map(
    files.map((name) => [name.replaceAll("\\", "/"), importsOf(readFileSync(join(folder, name), "utf8"))] as const),
  );
}

/** The file that a relative specifier means; undefined for a package or a built-in module. */
export function targetOf(file: string, specifier: string): string | undefined {
  return specifier.startsWith(".") ? posix.join(posix.dirname(file), specifier) : undefined;
}

/** The first cycle found, as the files along it; undefined if there is none. */
export function findCycle(graph: ImportGraph): readonly string[] | undefined {
  const finished = new Set<string>();
  const visit = (file: string, trail: readonly string[]): readonly string[] | undefined => {
    const start = trail.indexOf(file);
    if (start !== -1) return [...trail.slice(start), file];
    if (finished.has(file)) return undefined;
    for (const specifier of graph.get(file) ?? []) {
      const target = targetOf(file, specifier);
      const cycle = target === undefined ? undefined : visit(target, [...trail, file]);
      if (cycle !== undefined) return cycle;
    }
    finished.add(file);
    return undefined;
  };
  for (const file of graph.keys()) {
    const cycle = visit(file, []);
    if (cycle !== undefined) return cycle;
  }
  return undefined;
}
