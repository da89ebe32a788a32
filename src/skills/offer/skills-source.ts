/** Skills as a Source: a tool that gives the instructions, prompts for people, and every file as a resource. */
import { ToolcribError } from "../../model/errors.ts";
import type { JsonObject } from "../../model/json.ts";
import type { PromptDefinition, ResourceDefinition, Result, ToolDefinition } from "../../model/protocol.ts";
import { type Definitions, NO_DEFINITIONS, type Source, type Use, type UseContext } from "../../model/source.ts";
import { contentsOf, mimeTypeOf } from "./file-content.ts";
import { instructionsOf } from "./instructions.ts";
import { describeMissing, fileUri, mainFile, type OfferedSkill, SKILL_PREFIX } from "./offered-skill.ts";

/** Hands a skill's raw arguments to the tool that it names. */
export type Dispatch = (skill: OfferedSkill, raw: string, context: UseContext) => Promise<Result>;

export interface SkillsSourceOptions {
  /** No id that a server can have. */
  readonly id: string;
  readonly dispatch: Dispatch;
}

/** The argument of a skill's tool and of its prompt. */
const ARGUMENTS = "arguments";
/** Key in `_meta` of tools, prompts and results that belong to a skill. */
const SKILL_KEY = "toolcrib/skill";

interface Place {
  readonly skill: OfferedSkill;
  readonly path: string;
}

export class SkillsSource implements Source {
  readonly id: string;
  readonly kind = "skills";
  readonly #dispatch: Dispatch;
  readonly #listeners = new Set<() => void>();
  #byName: ReadonlyMap<string, OfferedSkill> = new Map();
  #byUri: ReadonlyMap<string, Place> = new Map();
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
        const text = await instructionsOf(skill, raw);
        return { content: [{ type: "text", text }], _meta: { [SKILL_KEY]: aboutSkill(skill) } };
      }
      case "prompt": {
        const skill = this.#named(use.name);
        const text = await instructionsOf(skill, use.arguments[ARGUMENTS] ?? "");
        return {
          description: skill.facts.description,
          messages: [{ role: "user", content: { type: "text", text } }],
          _meta: { [SKILL_KEY]: aboutSkill(skill) },
        };
      }
      case "resource": {
        const place = this.#byUri.get(use.uri);
        if (place === undefined) throw new ToolcribError("not_found", `No skill has a file ${use.uri}.`);
        return { contents: [contentsOf(use.uri, place.path, await place.skill.read(place.path))] };
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
    if (skill === undefined) throw new ToolcribError("not_found", `There is no skill behind "${name}".`);
    return skill;
  }
}

function aboutSkill({ id, facts, source }: OfferedSkill): JsonObject {
  return { id, name: facts.name, digest: facts.digest, source };
}

function toolOf(skill: OfferedSkill): ToolDefinition {
  const { facts, key } = skill;
  const hint = facts.argumentHint === undefined ? "" : ` Form: ${facts.argumentHint}`;
  const about =
    facts.dispatch === undefined ? "What the skill is to be applied to, if anything." : "Passed on as it is.";
  return {
    name: SKILL_PREFIX + key,
    title: facts.emoji === undefined ? facts.name : `${facts.emoji} ${facts.name}`,
    description: describe(skill),
    inputSchema: {
      type: "object",
      properties: { [ARGUMENTS]: { type: "string", description: about + hint } },
      additionalProperties: false,
    },
    // A skill that hands over can do whatever its tool can.
    ...(facts.dispatch === undefined ? { annotations: { readOnlyHint: true, openWorldHint: false } } : {}),
    _meta: { [SKILL_KEY]: aboutSkill(skill) },
  };
}

function describe({ facts, missing }: OfferedSkill): string {
  const lacking = describeMissing(missing);
  const opening =
    facts.dispatch === undefined
      ? `Get the instructions of the skill "${facts.name}". ${facts.description}`
      : `The skill "${facts.name}", run by the tool ${facts.dispatch.tool}. ${facts.description}`;
  return lacking === undefined ? opening : `${opening} (Not ready on this machine: ${lacking} is missing.)`;
}

function promptOf(skill: OfferedSkill): PromptDefinition {
  const { facts, key } = skill;
  return {
    name: SKILL_PREFIX + key,
    title: facts.name,
    description: facts.description,
    arguments: [
      {
        name: ARGUMENTS,
        description: facts.argumentHint ?? "What the skill is to be applied to, if anything.",
        required: false,
      },
    ],
    _meta: { [SKILL_KEY]: aboutSkill(skill) },
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
      _meta: { [SKILL_KEY]: { digest } },
    };
  });
}

function textArgument(args: JsonObject): string {
  const given = args[ARGUMENTS] ?? "";
  if (typeof given === "string") return given;
  throw new ToolcribError("invalid_arguments", `"${ARGUMENTS}" must be text.`);
}
