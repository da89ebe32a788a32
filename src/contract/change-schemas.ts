/** Changes of the config by an operator: rules, roles, servers and tokens, shown as a diff before they are written. */
import { z } from "zod";
import { SCOPES } from "../model/caller.ts";

const Name = z.string().min(1).max(200);
const Pattern = z.string().min(1).max(500);

export const ConfigChangeSchema = z
  .discriminatedUnion("kind", [
    z.strictObject({
      kind: z.literal("rule"),
      verdict: z
        .enum(["allow", "ask", "deny", "none"])
        .describe("`none` removes the entries of these patterns, so that other rules decide."),
      patterns: z
        .array(Pattern)
        .min(1)
        .max(1000)
        .describe("Public names of tools, or patterns as in `tools` of the config."),
      role: Name.optional().describe("For sessions of this role; for everyone if absent."),
      serverId: Name.optional().describe("Among the rules of this server, in the file or the store that has it."),
    }),
    z.strictObject({
      kind: z.literal("role"),
      role: Name,
      settings: z
        .record(z.string(), z.unknown())
        .nullable()
        .describe("Keys as below `roles.<role>` of the config; a null removes the key, and null alone the role."),
    }),
    z.strictObject({
      kind: z.literal("server"),
      serverId: Name,
      updates: z
        .record(z.string(), z.unknown())
        .nullable()
        .describe("As for `updateServer`; null removes the server. In the file or the store that has it."),
    }),
    z.strictObject({
      kind: z.literal("token"),
      name: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, "letters, digits, . _ and -"),
      user: Name.optional(),
      role: Name.optional(),
      scopes: z.array(z.enum(SCOPES)).min(1).default(["read", "call"]),
    }),
    z.strictObject({ kind: z.literal("revokeToken"), name: Name }),
  ])
  .meta({ id: "ConfigChange" });

export const RulePlaceSchema = z.object({
  level: z.string().describe("`hub`, `project`, `server`, `role`, `session`, `tool`, `pin` or `taint`."),
  list: z.string().describe("`allow`, `ask`, `deny` or what else decides, such as `servers` of a role."),
  pattern: z.string().describe("The entry; of an `allow` list that nothing matched, the whole list."),
  where: z.string().describe("The file with its line, the store, or what else has it."),
});

const Names = z.array(z.string()).describe("Public names of tools, at most 100.");
const ToolEffects = {
  loses: Names,
  gains: Names,
  asks: Names.describe("Those that need approval from now on, at most 100."),
  frees: Names.describe("Those that need no approval any more, at most 100."),
  counts: z.object({ loses: z.int(), gains: z.int(), asks: z.int(), frees: z.int() }),
};

export const PlannedChangeSchema = z
  .object({
    etag: z.string().describe("Of the file as it is now; the write needs it."),
    diffs: z.array(
      z.object({
        where: z.string().describe("The file, or the server in the store."),
        lines: z.array(z.string()).describe("They begin with `-`, `+` or a space; secrets are masked."),
      }),
    ),
    effect: z.object({
      clients: z
        .array(
          z.object({
            session: z.string(),
            client: z.string().nullable(),
            user: z.string().nullable(),
            role: z.string().nullable(),
            ...ToolEffects,
          }),
        )
        .describe("Open sessions of clients at this hub that see or may use something else then."),
      roles: z.array(z.object({ role: z.string().nullable().describe("Null for no role."), ...ToolEffects })),
    }),
    unmet: z
      .array(
        z.object({ name: z.string(), verdict: z.enum(["allow", "ask", "deny"]), rule: RulePlaceSchema.nullable() }),
      )
      .describe("Named tools that other rules decide otherwise even then."),
    notes: z.array(z.string()).describe("What else follows, and new warnings about the config."),
    saved: z.boolean(),
    token: z.string().optional().describe("The token that was made. It is stored as a digest, and never shown again."),
  })
  .meta({ id: "PlannedChange" });

export const TokenInfoSchema = z
  .object({
    name: z.string().nullable(),
    user: z.string().nullable(),
    role: z.string().nullable(),
    scopes: z.array(z.enum(SCOPES)),
    created: z.string().nullable(),
    stored: z
      .enum(["digest", "reference"])
      .describe("How the config has it: as a digest, or as a reference to a secret."),
    lastUsed: z.string().nullable().describe("ISO time to the minute; null for never, and for tokens without a name."),
  })
  .meta({ id: "Token" });

export const RoleInfoSchema = z
  .object({
    role: z.string(),
    settings: z
      .record(z.string(), z.unknown())
      .describe("As below `roles.<role>` of the config, without its own servers."),
    servers: z.array(z.string()).describe("Ids of the servers that name the role, or are its own."),
    editable: z.boolean().describe("Whether it is in the config file, or nowhere yet."),
  })
  .meta({ id: "Role" });

export type RoleInfo = z.output<typeof RoleInfoSchema>;
export type ConfigChange = z.output<typeof ConfigChangeSchema>;
export type PlannedChange = z.output<typeof PlannedChangeSchema>;
export type TokenInfo = z.output<typeof TokenInfoSchema>;
