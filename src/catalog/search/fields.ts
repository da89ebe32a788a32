/** What of a tool is searched, and how much each part of it counts. */
import type { ToolCapability } from "../../model/capability.ts";
import { isJsonObject } from "../../model/json.ts";
import { isLocalSource } from "../../model/local-source.ts";

/**
 * `evenness` is BM25's b: how much a long field is held against its words. Names are weighed apart from prose, each with
 * its own rarity of words: "list" stands in the prose of most tools, and still tells `list_issues` from `get_issue`.
 */
export const FIELDS = [
  { name: "name", group: "label", weight: 3, evenness: 0.5 },
  { name: "server", group: "label", weight: 1, evenness: 0 },
  { name: "tags", group: "prose", weight: 2, evenness: 0.3 },
  { name: "description", group: "prose", weight: 2, evenness: 0.6 },
  { name: "parameterNames", group: "prose", weight: 1, evenness: 0.6 },
  { name: "parameterTexts", group: "prose", weight: 0.5, evenness: 0.6 },
] as const satisfies readonly { name: string; group: Group; weight: number; evenness: number }[];

export type Group = "label" | "prose";

/** What a group counts in the end. */
export const GROUP_WEIGHTS: Readonly<Record<Group, number>> = { label: 1, prose: 0.6 };

export const FIELD_COUNT = FIELDS.length;

/** A server decides what it sends; what it takes to index it must not be its choice. */
const MAX_TEXT = 4000;
const MAX_PARAMETERS = 200;
const MAX_DEPTH = 4;
const MAX_CHOICES = 20;

/** The texts of a tool, for each of FIELDS. */
export type FieldTexts = readonly (readonly string[])[];

export function fieldTexts(tool: ToolCapability, tags: readonly string[]): FieldTexts {
  const { definition, origin, name } = tool;
  const parameters = new ParameterTexts();
  parameters.read(definition.inputSchema, 0);
  return [
    [origin.name, cut(definition.title ?? "")],
    // The public name holds the prefix that people know the server by; for in-process tools there is no server.
    isLocalSource(origin.source) ? [] : [origin.source, name],
    tags,
    [cut(definition.description ?? "")],
    parameters.names,
    parameters.texts,
  ];
}

function cut(text: string): string {
  return text.length > MAX_TEXT ? text.slice(0, MAX_TEXT) : text;
}

class ParameterTexts {
  readonly names: string[] = [];
  readonly texts: string[] = [];
  #room = MAX_TEXT * 2;

  read(schema: unknown, depth: number): void {
    if (!isJsonObject(schema) || depth > MAX_DEPTH) return;
    if (depth > 0 && typeof schema["description"] === "string") this.texts.push(this.#short(schema["description"]));
    if (Array.isArray(schema["enum"])) {
      const choices = schema["enum"].slice(0, MAX_CHOICES).filter((choice) => typeof choice === "string");
      this.texts.push(...choices.map((choice) => this.#short(choice)));
    }
    if (isJsonObject(schema["properties"])) {
      for (const [name, property] of Object.entries(schema["properties"])) {
        if (this.names.length >= MAX_PARAMETERS) return;
        this.names.push(this.#short(name));
        this.read(property, depth + 1);
      }
    }
    this.read(schema["items"], depth + 1);
  }

  /** As much of a text as there is room for beside the others. */
  #short(text: string): string {
    const short = text.length > this.#room ? text.slice(0, this.#room) : text;
    this.#room -= short.length;
    return short;
  }
}
