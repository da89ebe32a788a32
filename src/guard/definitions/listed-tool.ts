/** A tool as the search for shadowing sees it: its names, and everything in its definition that a model reads. */
import type { ToolCapability } from "../../model/capability.ts";
import { isJsonObject } from "../../model/json.ts";

export interface ListedTool {
  readonly server: string;
  /** The server's own name for it. */
  readonly name: string;
  /** The name that models know it by. */
  readonly publicName?: string;
  readonly description?: string;
  /** What else there is to read: titles, and the texts of its schemas. */
  readonly texts?: readonly string[];
}

/** Larger than any real definition; whoever scans definitions for poison reports one that is. */
const MOST_TEXTS = 20_000;

export function listedTool({
  name,
  origin,
  definition,
}: Pick<ToolCapability, "name" | "origin" | "definition">): ListedTool {
  const { name: _name, description, ...rest } = definition;
  return {
    server: origin.source,
    name: origin.name,
    publicName: name,
    ...(typeof description === "string" ? { description } : {}),
    texts: textsOf(rest),
  };
}

/** With a stack of its own, since the depth is the server's choice. */
function textsOf(definition: unknown): string[] {
  const texts: string[] = [];
  const pending = [definition];
  while (pending.length > 0 && texts.length < MOST_TEXTS) {
    const value = pending.pop();
    if (typeof value === "string") texts.push(value);
    else if (Array.isArray(value)) pending.push(...value.slice(0, MOST_TEXTS));
    else if (isJsonObject(value)) pending.push(...Object.values(value).slice(0, MOST_TEXTS));
  }
  return texts;
}
