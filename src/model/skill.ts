/** Skills: folders with a SKILL.md, whatever dialect it was written in. */
import type { JsonObject } from "./json.ts";
import type { SandboxOptions } from "./server-spec.ts";

export type SkillDialect = "agent-skills" | "claude-code" | "openclaw";

/** The program or standard that a skill was written for. */
export const SKILL_SOURCES = ["openclaw", "agentskills", "claude-code"] as const;
export type SkillSource = (typeof SKILL_SOURCES)[number];

/** Something that was repaired or is not as the standard wants it. */
export interface SkillWarning {
  readonly code: string;
  readonly message: string;
  /** In SKILL.md, from 1. */
  readonly line?: number;
}

/** refuse: not taken in unless forced. warn: shown before a person decides. note: worth knowing. */
export type SkillSeverity = "note" | "warn" | "refuse";

/** Something suspicious in a file of a skill. */
export interface SkillFinding {
  readonly code: string;
  readonly severity: SkillSeverity;
  readonly message: string;
  /** Path inside the skill. */
  readonly file: string;
  readonly line?: number;
  /** Short and printable. */
  readonly excerpt?: string;
}

export interface SkillFile {
  /** Inside the skill, with `/`. */
  readonly path: string;
  readonly size: number;
  /** `sha256:` and 64 hex digits, of the raw bytes. */
  readonly digest: string;
  readonly executable: boolean;
}

/** Requirements for the machine. Lists are empty if nothing is required. */
export interface SkillNeeds {
  readonly bins: readonly string[];
  /** One of these is enough. */
  readonly anyBins: readonly string[];
  readonly env: readonly string[];
  /** Paths into OpenClaw's config that must be truthy. */
  readonly config: readonly string[];
  /** `darwin`, `linux`, `win32`; `windows` and `macos` are read as those. */
  readonly os: readonly string[];
}

/** The part of the needs that this machine does not meet. */
export interface MissingNeeds extends SkillNeeds {
  /** Names of required MCP servers that are not set up. */
  readonly servers: readonly string[];
}

/** A step that the skill's author proposes for getting a program. Shown, never run. */
export interface SkillInstallStep {
  readonly kind: string;
  readonly label?: string;
  readonly bins: readonly string[];
  /** As it was written. */
  readonly step: JsonObject;
}

export interface ServerParameter {
  readonly name: string;
  readonly description?: string;
  readonly required: boolean;
  readonly sensitive: boolean;
  /** May contain `${CWD}`, `${WORKSPACE}`, `${HOME}`, `${SKILL_DIR}`. Never there for a sensitive parameter. */
  readonly default?: string;
  readonly example?: string;
  /** Used by the template without being declared. */
  readonly implied?: true;
  /** Other names under which people have its value. */
  readonly aliases?: readonly string[];
}

/** An entry of `mcpServers` with `${PARAM}` placeholders in its strings. */
export interface ServerTemplate {
  readonly command?: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly url?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly transport?: "stdio" | "http" | "sse";
  /** The image that it runs in and whose own program is started; only where that was chosen. */
  readonly container?: ContainerTemplate;
}

/** An image of a skill, and what the operator allows servers of skills. */
export interface ContainerTemplate extends Partial<
  Pick<SandboxOptions, "network" | "memory" | "cpus" | "pids" | "timeout">
> {
  readonly image: string;
  readonly port?: number;
  /** Folders of the machine that it may change. */
  readonly write?: readonly string[];
}

export interface ServerImage {
  readonly image: string;
  readonly port?: number;
  /** For the image's own program, where the skill says nothing else of how to start the server. */
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** An MCP server that a skill needs. */
export interface RequiredServer {
  readonly name: string;
  readonly package?: string;
  readonly description?: string;
  /** Absent if there is only an unknown name. */
  readonly template?: ServerTemplate;
  readonly parameters: readonly ServerParameter[];
  /** An image of it, which is used where containers can be run. */
  readonly docker?: ServerImage;
  /** The template comes from the table of well-known servers. */
  readonly wellKnown?: true;
}

/** All that SKILL.md and its folder say, without the text itself. Plain JSON. */
export interface SkillFacts {
  readonly name: string;
  readonly description: string;
  readonly dialect: SkillDialect;
  readonly version?: string;
  readonly author?: string;
  readonly license?: string;
  readonly compatibility?: string;
  readonly homepage?: string;
  readonly emoji?: string;
  readonly allowedTools: readonly string[];
  /** A model must not take it up by itself. */
  readonly disableModelInvocation: boolean;
  /** A person may call it by name. */
  readonly userInvocable: boolean;
  readonly argumentHint?: string;
  /** There for a skill that hands its arguments straight to a tool. */
  readonly dispatch?: { readonly tool: string; readonly argMode: "raw" };
  readonly always: boolean;
  readonly primaryEnv?: string;
  readonly skillKey?: string;
  readonly needs: SkillNeeds;
  readonly install: readonly SkillInstallStep[];
  readonly servers: readonly RequiredServer[];
  /** Further known fields in camelCase: context, agent, model, hooks … Shown, never acted on. */
  readonly extensions: JsonObject;
  /** As it was written, after repairs, in the names it was written in. */
  readonly frontmatter: JsonObject;
  /** Every file, SKILL.md first, then by path. */
  readonly files: readonly SkillFile[];
  /** Of all files together: `sha256:` and 64 hex digits. */
  readonly digest: string;
  readonly warnings: readonly SkillWarning[];
}

/** A skill and where it is, without the text. */
export interface LocatedSkill extends SkillFacts {
  /** Absolute. */
  readonly dir: string;
}

/** Frozen. */
export interface Skill extends LocatedSkill {
  /** The markdown after the frontmatter. */
  readonly body: string;
  /** SKILL.md as it is on disk. */
  readonly bytes: Uint8Array;
}

export interface SkillTool {
  readonly name: string;
  readonly description: string;
}

/** An imported skill as the registry keeps it. */
export interface SkillManifest {
  /** `openclaw-skill-<name>` for that source, else `skill-<name>`. */
  readonly id: string;
  readonly name: string;
  readonly version: string;
  readonly author: string;
  readonly description: string;
  readonly category: "tools";
  readonly icon: string;
  /** The tools that it offers or hands over to, by their public names. */
  readonly tools: readonly SkillTool[];
  readonly keywords: readonly string[];
  readonly source: SkillSource;
  /** As it was given: a folder, an archive, a git address, a package, `server:<id>`. */
  readonly from: string;
  /** The folder that was read. */
  readonly sourcePath: string;
  readonly warnings: readonly SkillWarning[];
  readonly findings: readonly SkillFinding[];
  readonly dependenciesMet: boolean;
  readonly missing: MissingNeeds;
  /** ISO time. */
  readonly importedAt: string;
  readonly digest: string;
  /** Where its files are stored; relative to the registry's folder. */
  readonly dir: string;
  readonly facts: SkillFacts;
}
