/**
 * The schema of the frontmatter of SKILL.md: source of the published JSON Schema, the page in docs and validation. The
 * standard is strict; all dialects together are open, as files in the wild are.
 */
import { z } from "zod";

/** A tool, with what it may do in brackets: `Bash(git add:*)`. */
const TOOLS = /^[^\s,()]+(?:\([^()]*\))?(?: +[^\s,()]+(?:\([^()]*\))?)*$/;

const Name = z
  .string()
  .min(1)
  .max(64)
  .regex(/^[a-z0-9]+(?:-[a-z0-9]+)*$/)
  .describe("Lower-case letters, digits and single hyphens between them; the same as the folder's name.");
const Description = z
  .string()
  .min(1)
  .max(1024)
  .regex(/\S/)
  .describe("What the skill does and when to use it. A model sees this before it uses the skill.");
const License = z.string().describe("Name of the license, or of the skill's file with its text.");
const Compatibility = z.string().min(1).max(500).describe("What the skill needs from the machine or the client.");

export const ParameterSchema = z.strictObject({
  description: z.string().optional().describe("What to fill in."),
  required: z.boolean().optional().describe("true by default, unless there is a default value."),
  sensitive: z.boolean().optional().describe("true: asked for without echo, stored as a secret, never with a default."),
  default: z
    .union([z.string(), z.number(), z.boolean()])
    .optional()
    .describe("May contain `${CWD}`, `${WORKSPACE}`, `${HOME}` and `${SKILL_DIR}`."),
  example: z.union([z.string(), z.number(), z.boolean()]).optional().describe("Shown when it is asked for."),
});

const Arguments = z.array(z.union([z.string(), z.number(), z.boolean()])).optional();
const NamedTexts = z
  .record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null(), ParameterSchema]))
  .optional();

/** How a required server is started or reached. */
export const TemplateSchema = z.strictObject({
  command: z
    .union([z.string(), z.array(z.string())])
    .optional()
    .describe("Program of a stdio server."),
  args: Arguments.describe("Its arguments."),
  env: NamedTexts.describe("Its environment variables."),
  cwd: z.string().optional().describe("Its working directory."),
  url: z.string().optional().describe("Address of a remote server."),
  headers: NamedTexts.describe("HTTP headers for it."),
});

export const ServerSchema = z
  .strictObject({
    ...TemplateSchema.shape,
    name: z
      .string()
      .min(1, "it is empty")
      .optional()
      .describe("Its id in the config. Taken from the package by default."),
    package: z
      .string()
      .min(1, "it is empty")
      .optional()
      .describe("npm package, run with `npx -y`; `pypi:name` is run with `uvx`. A version may follow."),
    description: z.string().optional().describe("What the skill uses it for."),
    purpose: z.string().optional().describe("The same as `description`."),
    transport: z.enum(["stdio", "http", "sse"]).optional().describe("`stdio`, `http` or `sse`; inferred by default."),
    "config-template": TemplateSchema.optional().describe(
      "How to start it, with `${PARAMETER}` or `${PARAMETER:-default}` in its strings. Its keys may also be next to `name`.",
    ),
    parameters: z
      .record(z.string(), z.union([ParameterSchema, z.string(), z.null()]))
      .optional()
      .describe("The meaning of the placeholders. An undeclared one is required, with a warning."),
    docker: z
      .union([z.string(), z.strictObject({ image: z.string(), port: z.int().min(1).max(65_535).optional() })])
      .optional()
      .describe("Its container image. Used if containers can be run."),
    stdio: TemplateSchema.optional().describe("How to start it without a container."),
  })
  // A server has a name, or one can be made from its package.
  .meta({ anyOf: ["name", "package"].map((key) => ({ properties: { [key]: {} }, required: [key] })) });

/** Strict: what is misspelled here would start the wrong program, or none. */
const ServersSchema = z
  .union([z.string(), z.array(z.union([z.string().min(1), ServerSchema]))])
  .describe("MCP servers that the skill needs: names, packages or templates.");

/** The Agent Skills standard to the letter, and the one key that Toolcrib adds to it. */
export const StandardSchema = z.strictObject({
  name: Name,
  description: Description,
  license: License.optional(),
  compatibility: Compatibility.optional(),
  metadata: z.record(z.string(), z.string()).optional().describe("Other strings by name, for other programs."),
  "allowed-tools": z
    .string()
    .regex(TOOLS)
    .optional()
    .describe("Tools that need no further approval, separated by spaces: `Bash(git:*) Read`."),
  "requires-mcp-servers": ServersSchema.optional(),
});

const Texts = z.union([z.string(), z.array(z.string())]);
const Label = z.union([z.string(), z.number()]);

/** Keys that Claude Code adds. */
export const ClaudeCodeSchema = z.looseObject({
  "disable-model-invocation": z.boolean().optional().describe("true: only a person may invoke the skill."),
  "user-invocable": z.boolean().optional().describe("false: people cannot invoke it by name. true by default."),
  "argument-hint": z
    .union([z.string(), z.array(z.unknown())])
    .optional()
    .describe("What to write after the skill's name: `[issue-number]`."),
  arguments: z.unknown().optional().describe("Names of positional arguments. Shown, has no effect."),
  "when-to-use": z.string().optional().describe("More about when to use it. Shown, has no effect."),
  "disallowed-tools": Texts.optional().describe("Tools that are off while the skill is active. Shown, has no effect."),
  context: z.string().optional().describe("`fork` runs it apart from the conversation. Shown, has no effect."),
  agent: z.string().optional().describe("The kind of agent for `context: fork`. Shown, has no effect."),
  model: z.string().optional().describe("The model for it. Shown, has no effect."),
  effort: Label.optional().describe("How hard the model should think. Shown, has no effect."),
  paths: Texts.optional().describe("Files that the skill is about. Shown, has no effect."),
  shell: z.string().optional().describe("The shell for commands in the text. Shown, never run."),
  hooks: z.unknown().optional().describe("Commands for events. Shown, never run."),
});

/** `metadata.openclaw`; `clawdbot` and `clawdis` are its former names. */
export const OpenClawBlockSchema = z.looseObject({
  requires: z
    .looseObject({
      bins: Texts.optional().describe("Programs that must be on the PATH, all of them."),
      anyBins: Texts.optional().describe("Programs, one of which is enough."),
      env: z.unknown().optional().describe("Environment variables that must be set."),
      config: Texts.optional().describe("Paths in OpenClaw's config that must be set."),
    })
    .optional()
    .describe("Requirements of the machine."),
  os: Texts.optional().describe("`darwin`, `linux`, `win32`; `macos` and `windows` too. Any by default."),
  always: z.boolean().optional().describe("true: it asks to be in every conversation."),
  primaryEnv: z.string().optional().describe("The variable with the skill's API key."),
  skillKey: z.string().optional().describe("Its key in OpenClaw's config."),
  emoji: z.string().optional().describe("An emoji for lists."),
  homepage: z.string().optional().describe("Where to read more."),
  install: z.unknown().optional().describe("Steps that install missing programs. Shown, never run."),
});

/** Top-level keys that OpenClaw adds. */
export const OpenClawSchema = z.looseObject({
  "command-dispatch": z
    .literal("tool")
    .optional()
    .describe("Passes its arguments directly to a tool, without a model."),
  "command-tool": z.string().optional().describe("Public name of that tool."),
  "command-arg-mode": z.literal("raw").optional().describe("Passes the text as written."),
  homepage: z.string().optional().describe("Where to read more."),
});

/** Keys that Toolcrib adds, and keys that many files have. */
export const ToolcribSchema = z.looseObject({
  "requires-mcp-servers": ServersSchema.optional(),
  version: Label.optional().describe("Version of the skill; 1.0.0 by default."),
  author: z
    .union([z.string(), z.looseObject({ name: z.string() })])
    .optional()
    .describe("Who wrote it."),
});

const VendorBlock = z.union([OpenClawBlockSchema, z.string()]).optional();

/** All dialects together. Unknown keys are allowed: what one program does not know another may. */
export const FrontmatterSchema = z.looseObject({
  name: Name,
  description: Description,
  license: License.optional(),
  compatibility: Compatibility.optional(),
  metadata: z
    .looseObject({
      openclaw: VendorBlock.describe("OpenClaw's requirements and switches."),
      clawdbot: VendorBlock.describe("Former name of `openclaw`."),
      clawdis: VendorBlock.describe("Former name of `openclaw`."),
    })
    .optional()
    .describe("Other values by name, and blocks of other programs."),
  "allowed-tools": Texts.optional().describe(
    "Tools that need no further approval, with spaces or commas, or as a list.",
  ),
  ...ClaudeCodeSchema.shape,
  ...OpenClawSchema.shape,
  ...ToolcribSchema.shape,
});

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

/** As in the package and in the output of `toolcrib schema --skill`: draft 2020-12, nothing to fetch. */
export function skillJsonSchema(): Record<string, unknown> & SchemaNode {
  const { $schema, ...root } = jsonSchemaOf(FrontmatterSchema);
  const { $schema: _, ...standard } = jsonSchemaOf(StandardSchema);
  return {
    $schema,
    $id: "urn:toolcrib:skill-frontmatter",
    title: "Frontmatter of SKILL.md",
    description: "The text between the two --- of a SKILL.md, in all dialects that Toolcrib reads.",
    ...root,
    $defs: { standard: { title: "The Agent Skills standard to the letter", ...standard } },
  };
}

export function jsonSchemaOf(schema: z.ZodType): SchemaNode & { $schema?: string } {
  // zod emits more than SchemaNode names; the rest is not used here.
  const node: unknown = z.toJSONSchema(schema, {
    io: "input",
    // Keys are always strings.
    override: ({ jsonSchema }) => delete jsonSchema.propertyNames,
  });
  return node as SchemaNode & { $schema?: string };
}
