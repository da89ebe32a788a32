/** The skills of a hub as Sources of its catalog: the user's own in one, those of each server in another. */
import { isDeepStrictEqual } from "node:util";
import type { Catalog } from "../../catalog/catalog.ts";
import { isFixed } from "../../catalog/overrides.ts";
import type { ToolCapability } from "../../model/capability.ts";
import { ToolcribError } from "../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import type { Result } from "../../model/protocol.ts";
import type { UseContext } from "../../model/source.ts";
import type { Session } from "../../sessions/session.ts";
import {
  fileUri,
  type OfferedSkill,
  serverSkills,
  isSkillsSource,
  SKILLS_SOURCE,
} from "../../skills/offer/offered-skill.ts";
import { type Dispatch, SkillsSource } from "../../skills/offer/skills-source.ts";
import { type NestedCall, nestedCall } from "../call/nested-call.ts";

interface OfferedSource {
  readonly source: SkillsSource;
  readonly server: string | undefined;
  skills: readonly OfferedSkill[];
}

export class SkillSources {
  readonly #catalog: Catalog;
  readonly #dispatch: Dispatch;
  readonly #onUpdated: (source: string, uri: string) => void;
  readonly #onChange: () => void;
  readonly #sources = new Map<string, OfferedSource>();

  /**
   * @param onUpdated Called for each file whose content changed.
   * @param onChange Called when the offered skills change.
   */
  constructor(
    catalog: Catalog,
    dispatch: Dispatch,
    onUpdated: (source: string, uri: string) => void,
    onChange: () => void = () => {},
  ) {
    this.#onChange = onChange;
    this.#catalog = catalog;
    this.#dispatch = dispatch;
    this.#onUpdated = onUpdated;
  }

  /** Replaces the user's own. */
  offerOwn(skills: readonly OfferedSkill[]): void {
    this.#offer(SKILLS_SOURCE, skills);
  }

  /** Replaces those of a server; none takes its source out of the catalog. */
  offerServers(server: string, skills: readonly OfferedSkill[]): void {
    this.#offer(serverSkills(server), skills, server);
  }

  /** The user's own. */
  own(): readonly OfferedSkill[] {
    return this.#sources.get(SKILLS_SOURCE)?.skills ?? [];
  }

  /** Whether a URI is below one of the user's own skills, even if that has no such file. */
  isOwnSkillUri(uri: string): boolean {
    const [base] = /^skill:\/\/[^/]*\//i.exec(`${uri}/`) ?? [];
    return base !== undefined && this.own().some((skill) => skill.base === base);
  }

  ofServer(server: string): readonly OfferedSkill[] {
    return this.#sources.get(serverSkills(server))?.skills ?? [];
  }

  all(): OfferedSkill[] {
    return [...this.#sources.values()].flatMap(({ skills }) => skills);
  }

  /** The skill that a name or URI of a source belongs to. */
  skillOf(source: string, originName: string): OfferedSkill | undefined {
    return this.#sources.get(source)?.source.skillOf(originName);
  }

  /** The server whose skills a source offers. */
  serverOf(source: string): string | undefined {
    return this.#sources.get(source)?.server;
  }

  /** The server that a skill comes from; undefined for the user's own. */
  serverOfSkill(skill: OfferedSkill): string | undefined {
    return [...this.#sources.values()].find(({ skills }) => skills.includes(skill))?.server;
  }

  #offer(id: string, skills: readonly OfferedSkill[], server?: string): void {
    const known = this.#sources.get(id);
    if (skills.length === 0) {
      if (known === undefined) return;
      this.#sources.delete(id);
      this.#catalog.removeSource(id);
      this.#onChange();
      return;
    }
    if (known !== undefined) {
      const present = reuseUnchanged(known.skills, skills);
      if (isSameList(known.skills, present)) return;
      const updated = changedFiles(known.skills, present);
      known.skills = present;
      known.source.offer(present);
      for (const uri of updated) this.#onUpdated(id, uri);
      this.#onChange();
      return;
    }
    const source = new SkillsSource({ id, dispatch: this.#dispatch });
    source.offer(skills);
    this.#sources.set(id, { source, skills, server });
    this.#catalog.addSource(source);
    this.#onChange();
  }
}

/** A skill that did not change stays the same object, for caches. */
function reuseUnchanged(before: readonly OfferedSkill[], after: readonly OfferedSkill[]): OfferedSkill[] {
  const byId = new Map(before.map((skill) => [skill.id, skill]));
  return after.map((skill) => {
    const old = byId.get(skill.id);
    return old !== undefined && isSameSkill(old, skill) ? old : skill;
  });
}

function isSameSkill(a: OfferedSkill, b: OfferedSkill): boolean {
  const essence = ({ key, facts, missing, findings, from, dir }: OfferedSkill): unknown => [
    key,
    facts.digest,
    missing,
    findings,
    from,
    dir,
  ];
  return isDeepStrictEqual(essence(a), essence(b));
}

function isSameList(a: readonly OfferedSkill[], b: readonly OfferedSkill[]): boolean {
  return a.length === b.length && a.every((skill, index) => skill === b[index]);
}

function changedFiles(before: readonly OfferedSkill[], after: readonly OfferedSkill[]): string[] {
  const digests = new Map(
    before.flatMap((skill) => skill.facts.files.map(({ path, digest }) => [fileUri(skill, path), digest])),
  );
  return after.flatMap((skill) =>
    skill.facts.files.flatMap(({ path, digest }) => {
      const uri = fileUri(skill, path);
      const old = digests.get(uri);
      return old === undefined || old === digest ? [] : [uri];
    }),
  );
}

interface DispatchOptions {
  /** The server that a skill comes from; undefined for the user's own. */
  readonly serverOf: (skill: OfferedSkill) => string | undefined;
  readonly session: (id: string) => Session | undefined;
  readonly tools: (session: Session) => readonly ToolCapability[];
  readonly call: NestedCall;
}

/** Skills with `command-dispatch: tool` pass their arguments to the tool that they name. */
export function createDispatch(options: DispatchOptions) {
  return async (skill: OfferedSkill, raw: string, context: UseContext): Promise<Result> => {
    const session = options.session(context.session.id);
    if (session === undefined) throw new ToolcribError("cancelled", "The session is closed.");
    const wanted = dispatchedCall(skill, raw, options.tools(session), options.serverOf(skill));
    return nestedCall(options.call, session, wanted, context);
  };
}

/** The call for a skill's raw arguments. */
export function dispatchedCall(
  skill: OfferedSkill,
  raw: string,
  tools: readonly ToolCapability[],
  server: string | undefined,
): { readonly name: string; readonly arguments: JsonObject } {
  const target = dispatchTarget(skill, tools, server);
  return { name: target.name, arguments: rawArguments(skill, raw, target) };
}

/** The tool by its public name, else the only one that its source calls so. A server's skill reaches that server only. */
export function dispatchTarget(
  skill: OfferedSkill,
  tools: readonly ToolCapability[],
  server: string | undefined,
): ToolCapability {
  const wanted = skill.facts.dispatch?.tool ?? "";
  const others = tools.filter(
    // Two skills that name each other would never end.
    ({ origin }) => !isSkillsSource(origin.source) && (server === undefined || origin.source === server),
  );
  const exact = others.find(({ name }) => name === wanted);
  if (exact !== undefined) return exact;
  const [only, another] = others.filter(({ origin }) => origin.name === wanted);
  if (only !== undefined && another === undefined) return only;
  const why = another === undefined ? "there is no such tool here" : "several servers have one";
  throw new ToolcribError(
    "not_found",
    `The skill ${skill.facts.name} passes its call to the tool "${wanted}": ${why}.`,
    {
      hint:
        another === undefined ? "`toolcrib list` shows what there is." : "Name it in SKILL.md as `toolcrib list` does.",
    },
  );
}

/** OpenClaw's names; those that a tool does not take are left out where it takes no others. */
function rawArguments(skill: OfferedSkill, raw: string, tool: ToolCapability): JsonObject {
  const given: JsonObject = { command: raw, commandName: skill.facts.name, skillName: skill.facts.name };
  const all = Object.fromEntries(Object.entries(given).filter(([name]) => !isFixed(tool, name)));
  const { properties, additionalProperties } = tool.definition.inputSchema;
  if (additionalProperties !== false || !isJsonObject(properties)) return all;
  return Object.fromEntries(Object.entries(all).filter(([name]) => Object.hasOwn(properties, name)));
}
