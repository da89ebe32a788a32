/** Skills as a Source: a tool that returns the instructions, a prompt for people, and every file as a resource. */
import { ToolcribError } from "../../model/errors.ts";
import type { JsonObject } from "../../model/json.ts";
import { ownMeta } from "../../model/own-meta.ts";
import type {
  PromptDefinition,
  ResourceContents,
  ResourceDefinition,
  Result,
  ToolDefinition,
} from "../../model/protocol.ts";
import { type Definitions, NO_DEFINITIONS, type Source, type Use, type UseContext } from "../../model/source.ts";
import { describeMissing, fileUri, mainFile, type OfferedSkill, setupCommand, SKILL_PREFIX } from "./offered-skill.ts";

/** Hands a skill's raw arguments to the tool that it names. */
export type Dispatch = (skill: OfferedSkill, raw: string, context: UseContext) => Promise<Result>;

interface SkillsSourceOptions {
  /** No id that a server can have. */
  readonly id: string;
  readonly dispatch: Dispatch;
}

/** The argument of a skill's tool and of its prompt. */
const ARGUMENTS = "arguments";
const APPLIED_TO = "What to apply the skill to, if anything.";

/** Key in `_meta` of tools, prompts and results that belong to a skill. */

interface SkillFileRef {
  readonly skill: OfferedSkill;
  readonly path: string;
}

export class SkillsSource implements Source {
  readonly id: string;
  readonly kind = "skills";
  readonly #dispatch: Dispatch;
  readonly #listeners = new Set<() => void>();
  #byName: ReadonlyMap<string, OfferedSkill> = new Map();
  #byUri: ReadonlyMap<string, SkillFileRef> = new Map();
  #definitions: Definitions = NO_DEFINITIONS;

  constructor({ id, dispatch }: SkillsSourceOptions) {
    this.id = id;
    this.#dispatch = dispatch;
  }

  /** Replaces all that is offered. */
  offer(skills: readonly OfferedSkill[]): void {
    if (skills.length === 0 && this.#byName.size === 0) return;
    this.#byName = new Map(skills.map((skill) => [SKILL_PREFIX + skill.key, skill]));
    this.#byUri = new Map(
      skills.flatMap((skill) => skill.facts.files.map(({ path }) => [fileUri(skill, path), { skill, path }] as const)),
    );
    this.#definitions = {
      ...NO_DEFINITIONS,
      tools: skills.filter(({ facts }) => !facts.disableModelInvocation).map(toolOf),
      prompts: skills.filter(({ facts }) => facts.userInvocable).map(promptOf),
      resources: skills.flatMap(resourcesOf),
    };
    for (const listener of this.#listeners) listener();
  }

  definitions(): Definitions {
    return this.#definitions;
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** The skill that one of this source's names or URIs belongs to. */
  skillOf(originName: string): OfferedSkill | undefined {
    return this.#byName.get(originName) ?? this.#byUri.get(originName)?.skill;
  }

  async run(use: Use, context: UseContext): Promise<Result> {
    switch (use.kind) {
      case "tool": {
        const skill = this.#named(use.name);
        const raw = textArgument(use.arguments);
        if (skill.facts.dispatch !== undefined) return this.#dispatch(skill, raw, context);
        const text = await skillInstructions(skill, raw);
        return { content: [{ type: "text", text }] };
      }
      case "prompt": {
        const skill = this.#named(use.name);
        const text = await skillInstructions(skill, use.arguments?.[ARGUMENTS] ?? "");
        return {
          description: skill.facts.description,
          messages: [{ role: "user", content: { type: "text", text } }],
        };
      }
      case "resource": {
        const place = this.#byUri.get(use.uri);
        if (place === undefined) throw new ToolcribError("not_found", `No skill has a file ${use.uri}.`);
        return { contents: [resourceContents(use.uri, place.path, await place.skill.read(place.path))] };
      }
      case "completion":
        return { completion: { values: [] } };
      case "subscribe":
      case "unsubscribe":
        return {};
    }
  }

  #named(name: string): OfferedSkill {
    const skill = this.#byName.get(name);
    if (skill === undefined) throw new ToolcribError("not_found", `No skill is called "${name}".`);
    return skill;
  }
}

function aboutSkill({ id, facts, from }: OfferedSkill): JsonObject {
  return { id, name: facts.name, digest: facts.digest, from };
}

function toolOf(skill: OfferedSkill): ToolDefinition {
  const { facts, key } = skill;
  const hint = facts.argumentHint === undefined ? "" : ` Form: ${facts.argumentHint}`;
  const about = facts.dispatch === undefined ? APPLIED_TO : "Passed on unchanged.";
  return {
    name: SKILL_PREFIX + key,
    title: facts.emoji === undefined ? facts.name : `${facts.emoji} ${facts.name}`,
    description: describeTool(skill),
    inputSchema: {
      type: "object",
      properties: { [ARGUMENTS]: { type: "string", description: about + hint } },
      additionalProperties: false,
    },
    // A skill that hands over can do whatever its tool can.
    ...(facts.dispatch === undefined ? { annotations: { readOnlyHint: true, openWorldHint: false } } : {}),
    _meta: ownMeta("skill", aboutSkill(skill)),
  };
}

function describeTool(skill: OfferedSkill): string {
  const { facts } = skill;
  const lacking = describeMissing(skill.missing);
  const opening =
    facts.dispatch === undefined
      ? `Get the instructions of the skill "${facts.name}". ${facts.description}`
      : `The skill "${facts.name}", run by the tool ${facts.dispatch.tool}. ${facts.description}`;
  return lacking === undefined
    ? opening
    : `${opening} (Not ready on this machine: ${lacking} is missing.${setupNote(skill)})`;
}

/** Begins with a space. */
function setupNote(skill: OfferedSkill): string {
  const command = skill.missing.servers.length === 0 ? undefined : setupCommand(skill);
  return command === undefined ? "" : ` A person sets it up with: ${command}`;
}

function promptOf(skill: OfferedSkill): PromptDefinition {
  const { facts, key } = skill;
  return {
    name: SKILL_PREFIX + key,
    title: facts.name,
    description: facts.description,
    arguments: [{ name: ARGUMENTS, description: facts.argumentHint ?? APPLIED_TO, required: false }],
    _meta: ownMeta("skill", aboutSkill(skill)),
  };
}

function resourcesOf(skill: OfferedSkill): ResourceDefinition[] {
  const { facts } = skill;
  return facts.files.map(({ path, size, digest }) => {
    const mimeType = mimeTypeOf(path);
    return {
      uri: fileUri(skill, path),
      name: `${facts.name}/${path}`,
      ...(path === mainFile(skill) ? { description: facts.description } : {}),
      ...(mimeType === undefined ? {} : { mimeType }),
      size,
      // A file that changed is another definition, so that who listens to lists hears of it.
      _meta: ownMeta("skill", { digest }),
    };
  });
}

function textArgument(args: JsonObject): string {
  const given = args[ARGUMENTS] ?? "";
  if (typeof given === "string") return given;
  throw new ToolcribError("invalid_arguments", `"${ARGUMENTS}" must be text.`);
}

// Instructions, as an agent reads them.

/** The rest is counted. */
const MAX_LISTED_FILES = 100;

/** @param given The text after the skill's name. */
export async function skillInstructions(skill: OfferedSkill, given = ""): Promise<string> {
  const { facts, dir, missing } = skill;
  const bytes = await skill.read(mainFile(skill));
  // Loaded on demand: a hub whose skills are not used needs no YAML.
  const { parseSkill } = await import("../read/read-skill.ts");
  const { body } = parseSkill(bytes, facts.name);
  const lacking = describeMissing(missing);
  const servers = facts.servers.map(({ name }) => name).join(", ");
  const notes = [
    ...(dir === undefined ? [] : [`Base directory of this skill: ${dir}`]),
    ...(lacking === undefined ? [] : [`Missing, but needed by this skill: ${lacking}.${setupNote(skill)}`]),
    ...(servers === "" ? [] : [`MCP servers used by this skill: ${servers}`]),
  ];
  const text = withArguments(body.trim(), given).replaceAll("{baseDir}", () => dir ?? skill.base.slice(0, -1));
  return [notes.join("\n"), text, filesOf(skill)].filter((part) => part !== "").join("\n\n");
}

/** Arguments are appended if the text has no place for them. */
function withArguments(body: string, given: string): string {
  if (body.includes("$ARGUMENTS")) return body.replaceAll("$ARGUMENTS", () => given);
  return given === "" ? body : `${body}\n\nARGUMENTS: ${given}`;
}

function filesOf(skill: OfferedSkill): string {
  const others = skill.facts.files.slice(1);
  if (others.length === 0) return "";
  const lines = others.slice(0, MAX_LISTED_FILES).map(({ path }) => `- ${path}: ${fileUri(skill, path)}`);
  if (others.length > MAX_LISTED_FILES) lines.push(`- and ${others.length - MAX_LISTED_FILES} more`);
  return ["Files of this skill, readable as resources:", ...lines].join("\n");
}

// Files as resource contents.

const MIME_TYPES: Readonly<Record<string, string>> = {
  css: "text/css",
  csv: "text/csv",
  gif: "image/gif",
  html: "text/html",
  jpeg: "image/jpeg",
  jpg: "image/jpeg",
  js: "text/javascript",
  json: "application/json",
  md: "text/markdown",
  mjs: "text/javascript",
  pdf: "application/pdf",
  png: "image/png",
  py: "text/x-python",
  sh: "application/x-sh",
  svg: "image/svg+xml",
  toml: "application/toml",
  ts: "text/x-typescript",
  txt: "text/plain",
  webp: "image/webp",
  xml: "application/xml",
  yaml: "application/yaml",
  yml: "application/yaml",
  zip: "application/zip",
};

/** Undefined if the name does not show it. */
export function mimeTypeOf(path: string): string | undefined {
  const dot = path.lastIndexOf(".");
  return dot === -1 ? undefined : MIME_TYPES[path.slice(dot + 1).toLowerCase()];
}

/** Text where the bytes are text and come back the same, else a blob. */
export function resourceContents(uri: string, path: string, bytes: Uint8Array): ResourceContents {
  const mimeType = mimeTypeOf(path);
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const text = decodeIfText(buffer);
  if (text === undefined) {
    return { uri, mimeType: mimeType ?? "application/octet-stream", blob: buffer.toString("base64") };
  }
  return { uri, mimeType: mimeType ?? "text/plain", text };
}

function decodeIfText(bytes: Buffer): string | undefined {
  if (bytes.includes(0)) return undefined;
  const text = bytes.toString("utf8");
  return Buffer.from(text, "utf8").equals(bytes) ? text : undefined;
}
