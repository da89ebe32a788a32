/** Skills as the HTTP contract shows them. */
import { z } from "zod";
import { SKILL_SOURCES } from "../model/skill.ts";

const Texts = z.array(z.string());

const NeedsSchema = z.object({ bins: Texts, anyBins: Texts, env: Texts, config: Texts, os: Texts });

const MissingSchema = NeedsSchema.extend({ servers: Texts.describe("Required MCP servers that are not set up.") });

const SourceSchema = z.enum(SKILL_SOURCES).describe("What it was written for.");
const From = z.string().describe("Where it came from: a path, a URL, or `server:<id>`.");

const WarningSchema = z.object({ code: z.string(), message: z.string(), line: z.int().optional() });

const FindingSchema = z.object({
  code: z.string(),
  severity: z.enum(["note", "warn", "refuse"]),
  message: z.string(),
  file: z.string(),
  line: z.int().optional(),
});

export const SkillInfoSchema = z
  .object({
    id: z.string(),
    name: z.string(),
    description: z.string(),
    source: SourceSchema,
    from: From,
    status: z
      .enum(["ready", "needs_setup", "missing", "broken"])
      .describe(
        "`needs_setup`: MCP servers are to be set up. `missing`: something else is. `broken`: it cannot be read.",
      ),
    setup: z.string().optional().describe("The command that sets up its servers."),
    icon: z.string().optional(),
    keywords: Texts,
    kind: z
      .enum(["imported", "folder", "server"])
      .describe("Imported into the home, from a folder of the config, or from a server."),
    dialect: z.string(),
    version: z.string().optional(),
    author: z.string().optional(),
    removable: z.boolean(),
    importedAt: z.string().optional(),
    requires: NeedsSchema,
    missing: MissingSchema,
    dependenciesMet: z.boolean(),
    servers: z.array(z.object({ name: z.string(), present: z.boolean() })).describe("MCP servers that it needs."),
    warnings: z.array(WarningSchema),
    findings: z.array(FindingSchema),
  })
  .meta({ id: "Skill" });

export const SkillDetailSchema = SkillInfoSchema.extend({
  uri: z.string().describe("URI of its SKILL.md."),
  files: z.array(z.object({ path: z.string(), size: z.int() })),
  tools: Texts.describe("Public names of its tools."),
  injectedFor: Texts.describe("Roles whose agents always get its instructions."),
  promptEntry: z.string().describe("Its entry in the prompt's catalog of skills."),
}).meta({ id: "SkillDetail" });

/** A skill that was found and not imported. */
const ScannedSkillSchema = z
  .object({
    name: z.string(),
    description: z.string(),
    path: z.string(),
    source: SourceSchema,
    dialect: z.string(),
    status: z.enum(["new", "updated", "unchanged", "refused", "conflict"]).describe("The effect of importing it."),
    requires: NeedsSchema,
    missing: MissingSchema,
    dependenciesMet: z.boolean(),
    otherOs: z.boolean().describe("It is for another operating system."),
    warnings: z.array(WarningSchema),
    findings: z.array(FindingSchema),
  })
  .meta({ id: "ScannedSkill" });

export const SkillFailureSchema = z
  .object({
    path: z.string(),
    name: z.string(),
    code: z.string(),
    message: z.string(),
  })
  .meta({ id: "SkillFailure" });

export const SkillManifestSchema = z
  .object({
    id: z.string(),
    name: z.string(),
    version: z.string(),
    author: z.string(),
    description: z.string(),
    category: z.string(),
    icon: z.string(),
    keywords: Texts,
    tools: z.array(z.object({ name: z.string(), description: z.string() })),
    source: SourceSchema,
    from: From,
    sourcePath: z.string().describe("The folder that it was read from."),
  })
  .meta({ id: "SkillManifest" });

export const ImportedSkillSchema = z
  .object({
    skillId: z.string(),
    name: z.string(),
    path: z.string().describe("The skill's own folder."),
    manifest: SkillManifestSchema,
    instructions: z.string().optional().describe("The text of its SKILL.md; only where one skill was imported."),
    warnings: z.array(WarningSchema).describe("What the reader noticed, and what is missing on the hub's machine."),
    dependenciesMet: z.boolean(),
  })
  .meta({ id: "ImportedSkill" });

export const SkillPlaceSchema = z
  .object({
    path: z.string(),
    label: z.string(),
    exists: z.boolean(),
  })
  .meta({ id: "SkillPlace" });

export const SkillScanSchema = z.object({
  skills: z.array(ScannedSkillSchema),
  failed: z.array(SkillFailureSchema),
  totalScanned: z.int(),
});

export const SkillImportReportSchema = z.object({
  imported: z.array(ImportedSkillSchema),
  unchanged: z.array(ImportedSkillSchema),
  failed: z.array(SkillFailureSchema),
  totalScanned: z.int(),
});

export type SkillScan = z.output<typeof SkillScanSchema>;
export type SkillImportReport = z.output<typeof SkillImportReportSchema>;
export type SkillInfo = z.output<typeof SkillInfoSchema>;
export type SkillDetail = z.output<typeof SkillDetailSchema>;
export type ScannedSkill = z.output<typeof ScannedSkillSchema>;
export type ImportedSkill = z.output<typeof ImportedSkillSchema>;
export type SkillFailure = z.output<typeof SkillFailureSchema>;
export type SkillManifestInfo = z.output<typeof SkillManifestSchema>;
export type SkillPlace = z.output<typeof SkillPlaceSchema>;
