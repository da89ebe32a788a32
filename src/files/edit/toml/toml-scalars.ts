import { bracketScalars, type PlacedScalar } from "../scalars.ts";
import { outlineToml } from "./toml-tree.ts";

export function tomlScalars(text: string): PlacedScalar[] {
  return outlineToml(text).flatMap(({ rows }) => rows.flatMap(({ path, value }) => bracketScalars(text, value, path)));
}
