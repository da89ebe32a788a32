/** A call that is safe to try, with arguments filled in. */
import type { ToolInfo } from "../../../../src/contract/catalog-schemas.ts";

export interface SampleCall {
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}

/** Names of tools that answer with something to see, the best first. */
const INVITING = [/echo/i, /get-?_?sum|add/i, /list_allowed|list_dir/i, /search|find|read_graph|list|get/i];

/** Only tools that say they read; undefined if none has arguments that can be filled in. */
export function sampleCall(tools: readonly ToolInfo[]): SampleCall | undefined {
  const possible = tools.flatMap((tool): (SampleCall & { readonly rank: number })[] => {
    const { annotations = {}, inputSchema = {}, name, mcpName, quarantined } = tool;
    const isHarmless = annotations["readOnlyHint"] === true || /^echo$|^get-sum$/i.test(mcpName);
    if (!isHarmless || quarantined !== undefined || annotations["openWorldHint"] === true) return [];
    const filled = filledArguments(inputSchema);
    if (filled === undefined) return [];
    const at = INVITING.findIndex((pattern) => pattern.test(mcpName));
    return [{ name, arguments: filled, rank: at === -1 ? INVITING.length : at }];
  });
  const [best] = possible.toSorted((a, b) => a.rank - b.rank || a.name.length - b.name.length);
  return best === undefined ? undefined : { name: best.name, arguments: best.arguments };
}

type Schema = Readonly<Record<string, unknown>>;

function isSchema(value: unknown): value is Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function filledArguments(schema: Schema): Record<string, unknown> | undefined {
  const properties = isSchema(schema["properties"]) ? schema["properties"] : {};
  const required = Array.isArray(schema["required"]) ? schema["required"].map(String) : [];
  const filled: Record<string, unknown> = {};
  for (const name of required) {
    const part = properties[name];
    const value = isSchema(part) ? valueFor(name, part) : undefined;
    if (value === undefined) return undefined;
    filled[name] = value;
  }
  return filled;
}

/** Paths, ids and other names of things cannot be guessed. */
const FREE_TEXT = /^(?:message|text|query|q|prompt|input|content|name|search|keyword)$/i;

function valueFor(name: string, part: Schema): unknown {
  const { default: given, examples, enum: choices, type } = part;
  if (given !== undefined) return given;
  if (Array.isArray(examples) && examples.length > 0) return examples[0];
  if (Array.isArray(choices)) return choices[0];
  if (type === "boolean") return false;
  if (type === "number" || type === "integer")
    return typeof part["minimum"] === "number" ? part["minimum"] : name.charCodeAt(0) % 2 === 0 ? 3 : 2;
  if (type === "string" && FREE_TEXT.test(name)) return "Hello from Toolcrib";
  return undefined;
}

/** The arguments as a person edits them; undefined if they are not an object. */
export function argumentsOf(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isSchema(value) ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}

/** The config that `npm start` uses: its servers are examples, and not the user's own. */
export function isDemoFile(file: string): boolean {
  return /[\\/]demo[\\/]toolcrib\.json$/.test(file);
}
