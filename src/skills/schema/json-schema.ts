/** The JSON Schema of the frontmatter: all dialects at its root, the standard to the letter under `$defs/standard`. */
import { z } from "zod";
import { FrontmatterSchema, StandardSchema } from "./frontmatter-schema.ts";

/** The part of JSON Schema that the frontmatter uses. */
export interface SchemaNode {
  /** A list where a value may be of several simple types. */
  type?: string | string[];
  description?: string;
  properties?: Record<string, SchemaNode>;
  required?: string[];
  additionalProperties?: boolean | SchemaNode;
  items?: SchemaNode;
  anyOf?: SchemaNode[];
  const?: unknown;
  minLength?: number;
  maxLength?: number;
}

/** As `toolcrib schema --skill` prints it and the package holds it: draft 2020-12, nothing to fetch. */
export function skillJsonSchema(): Record<string, unknown> & SchemaNode {
  const { $schema, ...root } = nodeOf(FrontmatterSchema);
  const { $schema: _, ...standard } = nodeOf(StandardSchema);
  return {
    $schema,
    $id: "urn:toolcrib:skill-frontmatter",
    title: "Frontmatter of SKILL.md",
    description: "What stands between the two --- of a SKILL.md, in all dialects that Toolcrib reads.",
    ...root,
    $defs: { standard: { title: "The Agent Skills standard to the letter", ...standard } },
  };
}

export function nodeOf(schema: z.ZodType): SchemaNode & { $schema?: string } {
  // zod emits what SchemaNode names and more, which nobody reads here.
  const node: unknown = z.toJSONSchema(schema, { io: "input", override: ({ jsonSchema }) => tidy(jsonSchema) });
  return node as SchemaNode & { $schema?: string };
}

/** That keys are text, and that numbers are safe, goes without saying. */
function tidy(node: Record<string, unknown>): void {
  delete node["propertyNames"];
}
