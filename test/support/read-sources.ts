import { readdirSync, readFileSync } from "node:fs";
import { basename, join, relative } from "node:path";

export interface SourceFile {
  /** From the repository's root, with forward slashes. */
  readonly path: string;
  readonly text: string;
}

/** Every file below a folder of the repository with one of these endings. */
export function readSources(folder: string, endings: readonly string[] = [".ts", ".tsx"]): SourceFile[] {
  const root = join(import.meta.dirname, "..", "..");
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => endings.some((ending) => basename(name).endsWith(ending)))
    .map((name) => join(folder, name))
    .map((file) => ({ path: relative(root, file).replaceAll("\\", "/"), text: readFileSync(file, "utf8") }));
}
