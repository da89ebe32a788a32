/** Tools, resources, prompts and pins as the HTTP contract shows them. */
import { z } from "zod";
import { RulePlaceSchema } from "./change-schemas.ts";

const Definition = z.record(z.string(), z.unknown());

const PIN_STATES = ["same", "changed", "new", "gone", "unknown", "off"] as const;

export const ToolInfoSchema = z
  .object({
    name: z.string().describe("The public name, the same at every door."),
    serverId: z.string().describe("Id of its source: a server, `local`, or `toolcrib:skills`."),
    mcpName: z.string().describe("Its name at the server."),
    server: z.string().describe("The former name of `serverId`; both are there."),
    tool: z.string().describe("The former name of `mcpName`; both are there."),
    title: z.string().optional(),
    description: z.string().optional(),
    inputSchema: Definition.optional().describe("Left out with `fields=summary`."),
    outputSchema: Definition.optional(),
    annotations: Definition.optional(),
    fingerprint: z.string(),
    pin: z.enum(PIN_STATES),
    quarantined: z.string().optional().describe("Why it is not offered."),
    access: z
      .object({
        verdict: z.enum(["allow", "ask", "deny"]),
        conditional: z.boolean().describe("Whether the arguments or circumstances of a call decide as well."),
        rule: RulePlaceSchema.nullable().describe("Null if no rule is about it."),
      })
      .optional()
      .describe("With `access`: what the rules decide, and which of them."),
    original: z
      .object({
        name: z.string().describe("The public name that it has without overrides."),
        title: z.string().optional(),
        description: z.string().optional(),
        inputSchema: Definition.optional().describe("Left out with `fields=summary`."),
        outputSchema: Definition.optional(),
        annotations: Definition.optional(),
        fingerprint: z.string().describe("The one that pins compare."),
      })
      .optional()
      .describe("The server's own definition, if the config overrides it."),
  })
  .meta({ id: "Tool" });

const PricedDefinitionSchema = z.object({
  name: z.string().describe("The public name."),
  definition: Definition.describe("The definition in the words of MCP."),
  tokens: z.int().describe("About what it costs a model to have it."),
});

export const OverriddenToolSchema = z
  .object({
    server: z.string(),
    tool: z.string().describe("Its name at the server."),
    override: Definition,
    original: PricedDefinitionSchema,
    effective: PricedDefinitionSchema,
    misfit: z.string().optional().describe("Why the override does not fit the server's definition."),
    where: z.string().describe("The file or store in which its server is written."),
    saved: z.boolean(),
  })
  .meta({ id: "OverriddenTool" });

export const ResourceInfoSchema = z
  .object({
    uri: z.string(),
    serverId: z.string(),
    server: z.string().describe("The former name of `serverId`; both are there."),
    name: z.string(),
    title: z.string().optional(),
    description: z.string().optional(),
    mimeType: z.string().optional(),
    template: z.boolean().describe("Whether `uri` is a template."),
    variables: z.array(z.string()).optional().describe("Of a template: the names of its variables."),
    followable: z.boolean().optional().describe("Whether its server reports changes of it."),
  })
  .meta({ id: "Resource" });

export const PromptInfoSchema = z
  .object({
    name: z.string(),
    serverId: z.string(),
    mcpName: z.string().describe("Its name at the server."),
    server: z.string().describe("The former name of `serverId`; both are there."),
    prompt: z.string().describe("The former name of `mcpName`; both are there."),
    title: z.string().optional(),
    description: z.string().optional(),
    arguments: z.array(Definition),
  })
  .meta({ id: "Prompt" });

export const ResultSchema = z
  .looseObject({
    content: z.array(z.looseObject({ type: z.string() })),
    structuredContent: z.unknown().optional(),
    isError: z.boolean().optional(),
  })
  .describe("The MCP result, unchanged except for the guard's markers.")
  .meta({ id: "CallResult" });

export const PinKindSchema = z.enum(["tool", "prompt", "resource", "template", "instructions"]);

const PinNameFields = {
  server: z.string(),
  kind: PinKindSchema,
  tool: z
    .string()
    .describe("Its name at the server, for every kind: the URI of a resource, `instructions` for instructions."),
};

export const PinNameSchema = z.object(PinNameFields).meta({ id: "PinName" });

export const PinSchema = z
  .object({
    ...PinNameFields,
    state: z
      .enum(PIN_STATES)
      .describe(
        "`unknown` before the server is connected, `gone` if the server no longer has it, `new` if it waits for approval.",
      ),
    fingerprint: z.string(),
    pinnedAt: z.string().describe("Empty for a new one."),
    diff: z.array(z.string()).optional().describe("The changed lines, for a changed or new one."),
  })
  .meta({ id: "Pin" });

const TextParts = z
  .array(z.object({ text: z.string(), changed: z.boolean() }))
  .nullable()
  .describe("The text in its order; null if there is none on this side.");

export const DefinitionChangeSchema = z
  .object({
    state: z.enum(["changed", "new"]).describe("`new`: it came after the server was pinned."),
    pinnedAt: z.string().nullable(),
    changes: z.array(
      z.object({
        place: z.string().describe('Such as `description` or `parameter "path"`.'),
        before: TextParts,
        after: TextParts,
      }),
    ),
    more: z.int().describe("Changes that are left out."),
  })
  .meta({ id: "DefinitionChange" });

export type DefinitionChange = z.output<typeof DefinitionChangeSchema>;
export type ToolInfo = z.output<typeof ToolInfoSchema>;
export type ResourceInfo = z.output<typeof ResourceInfoSchema>;
export type PromptInfo = z.output<typeof PromptInfoSchema>;
export type PinInfo = z.output<typeof PinSchema>;
