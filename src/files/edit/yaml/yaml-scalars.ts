import { bracketScalars, type PlacedScalar } from "../scalars.ts";
import { outlineYaml, type YamlValue } from "./yaml-tree.ts";

export function yamlScalars(text: string): PlacedScalar[] {
  const root = outlineYaml(text);
  return root === undefined ? [] : scalarsOf(text, root, []);
}

function scalarsOf(text: string, value: YamlValue, path: PlacedScalar["path"]): PlacedScalar[] {
  switch (value.kind) {
    case "empty":
      return [];
    case "flow":
      return bracketScalars(text, value.node, path);
    case "scalar":
      return [{ path, start: value.start, end: value.end, value: value.string ?? text.slice(value.start, value.end) }];
    default:
      return value.entries.flatMap((entry, index) => scalarsOf(text, entry.value, [...path, entry.key ?? index]));
  }
}
