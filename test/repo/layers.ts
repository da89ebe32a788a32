/** The layer order as data, and what breaks it. A folder imports from lower rows only; folders of one row never meet. */
import { type ImportGraph, targetOf } from "../support/import-graph.ts";

export const LAYERS: readonly (readonly string[])[] = [
  ["model"],
  ["base", "files", "contract"],
  ["telemetry", "store", "secrets", "clients", "policy", "guard", "schemas", "api-client", "cluster"],
  ["config", "upstream", "skills", "tools"],
  ["catalog"],
  ["sessions"],
  ["hub"],
  ["agent", "testing"],
  ["doors/http"],
  ["doors/mcp", "doors/acp"],
  ["cli"],
  // The files of the package's edge, such as index.ts.
  [""],
];

/** The row-0 folder may use this package and nothing else, not even Node: its types are everybody's. */
const MODEL_PACKAGES = ["zod"];

export function layerBreaches(graph: ImportGraph): string[] {
  const breaches: string[] = [];
  for (const [file, specifiers] of graph) {
    const folder = folderOf(file);
    const row = rowOf(folder);
    if (row === -1) {
      breaches.push(`${file}: the folder is in no row of the layer table`);
      continue;
    }
    for (const specifier of specifiers) {
      const target = targetOf(file, specifier);
      if (target === undefined) {
        if (folder === "model" && !MODEL_PACKAGES.includes(specifier)) breaches.push(`${file}: imports ${specifier}`);
        continue;
      }
      if (!graph.has(target)) breaches.push(`${file}: imports ${specifier}, which is not there`);
      else if (folderOf(target) !== folder && rowOf(folderOf(target)) >= row)
        breaches.push(`${file}: imports ${target}`);
    }
  }
  return breaches;
}

/** The longest folder of the table that holds the file, so that the doors count one by one. */
function folderOf(file: string): string {
  const parts = file.split("/").slice(0, -1);
  if (parts[0] === "doors") return parts.slice(0, 2).join("/");
  return parts[0] ?? "";
}

function rowOf(folder: string): number {
  return LAYERS.findIndex((row) => row.includes(folder));
}
