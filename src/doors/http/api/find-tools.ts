/** Search in the tools that a session sees: by the hub's ranking, then whatever else has the text in it. */
import { ToolIndex } from "../../../catalog/search/tool-index.ts";
import type { View } from "../../../hub/view.ts";
import type { ToolCapability } from "../../../model/capability.ts";

/** A view is the same object until the catalog changes. */
const indexes = new WeakMap<View, ToolIndex>();

export function findTools(view: View, query: string): ToolCapability[] {
  let index = indexes.get(view);
  if (index === undefined) indexes.set(view, (index = new ToolIndex(view.tools)));
  const byName = new Map(view.tools.map((tool) => [tool.name, tool]));
  const ranked = index.search(query, view.tools.length).flatMap(({ name }) => byName.get(name) ?? []);
  const found = new Set(ranked);
  // People type the beginning of a word and expect to see it found.
  const part = query.trim().toLowerCase();
  for (const tool of view.tools) if (holds(tool, part)) found.add(tool);
  return [...found];
}

function holds({ name, definition: { title, description } }: ToolCapability, part: string): boolean {
  return [name, title, description].some((text) => typeof text === "string" && text.toLowerCase().includes(part));
}
