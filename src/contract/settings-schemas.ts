/** The config, policy explanations and the caller as the HTTP contract shows them. */
import { z } from "zod";
import { SCOPES } from "../model/caller.ts";

export const ConfigValueSchema = z.object({
  key: z.string().describe("Dotted, such as `limits.callsPerMinute`."),
  value: z.unknown().describe("Masked if it could be a secret."),
  origin: z.enum(["default", "file", "environment", "store", "command line", "code"]),
  where: z.string().optional().describe("The file with its line, or the variable."),
});

export const ConfigViewSchema = z
  .object({
    file: z.string().nullable(),
    files: z.array(z.string()).describe("All files that it was read from."),
    values: z.array(ConfigValueSchema),
    warnings: z.array(z.string()),
    tokens: z
      .array(z.object({ user: z.string().nullable(), role: z.string().nullable(), scopes: z.array(z.enum(SCOPES)) }))
      .describe("Tokens of `http.auth`, never their text."),
    roles: z.array(z.string()),
  })
  .meta({ id: "Config" });

export const ExplanationSchema = z
  .object({
    name: z.string(),
    verdict: z.enum(["allow", "deny", "ask"]),
    visible: z.boolean(),
    rule: z.looseObject({}).nullable(),
    reasons: z.array(z.string()).describe("Sentences, the deciding one first."),
    nearest: z
      .object({
        verdict: z.enum(["allow", "deny", "ask"]),
        rule: z.looseObject({}),
        unmet: z.array(z.string()).describe("Its conditions that do not hold; empty if another rule overrules it."),
      })
      .nullable()
      .describe("The rule that was closest to another decision."),
  })
  .meta({ id: "Explanation" });

export const MeSchema = z
  .object({
    user: z.string().nullable(),
    role: z.string().nullable(),
    owner: z.boolean(),
    scopes: z.array(z.enum(SCOPES)),
    version: z.string(),
    url: z.string().describe("The hub's URL as the caller reaches it."),
  })
  .meta({ id: "Me" });

export const ClientSnippetSchema = z
  .object({
    id: z.string(),
    title: z.string(),
    file: z.string().nullable().describe("The file that it goes into, on the hub's machine."),
    snippet: z.string(),
    command: z.string().describe("The command that does the same."),
    installed: z.boolean().describe("Whether it is on the hub's machine; false for callers elsewhere."),
    connected: z.boolean().describe("Whether its own config has Toolcrib; false for callers elsewhere."),
  })
  .meta({ id: "ClientSnippet" });

export const ChangedClientSchema = z
  .object({
    id: z.string(),
    title: z.string(),
    file: z.string().describe("The config file of the client."),
    changed: z.boolean().describe("False if it was so already."),
    next: z.string().describe("The step that applies it, such as a restart of the client."),
  })
  .meta({ id: "ChangedClient" });

export type ConfigView = z.output<typeof ConfigViewSchema>;
export type Explanation = z.output<typeof ExplanationSchema>;
export type Me = z.output<typeof MeSchema>;
export type ChangedClient = z.output<typeof ChangedClientSchema>;
export type ClientSnippet = z.output<typeof ClientSnippetSchema>;
