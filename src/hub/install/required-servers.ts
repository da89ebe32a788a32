/** The servers that the skills of an install need, each once, and which of them are there already. */
import { canonicalJson } from "../../model/canonical-json.ts";
import { ServerIdSchema, type ServerSpec } from "../../model/server-spec.ts";
import type { RequiredServer, Skill } from "../../model/skill.ts";
import { satisfiedBy } from "../../skills/servers/resolve.ts";
import { parametersUsed } from "../../skills/servers/template-strings.ts";

export interface PlannedServer {
  /** Its id in Toolcrib's config. */
  readonly id: string;
  readonly server: RequiredServer;
  /** The first skill that needs it: `${SKILL_DIR}` is that one's folder. */
  readonly skill: Skill;
  /** Names of all skills that need it. */
  readonly neededBy: readonly string[];
  /** The one of the config that does its job. */
  readonly configured?: ServerSpec;
}

/** @param choose How a server is run that can be run in several ways. */
export function requiredServers(
  skills: readonly Skill[],
  configured: readonly ServerSpec[],
  choose: (server: RequiredServer) => RequiredServer = (server) => server,
): PlannedServer[] {
  const planned: { -readonly [Key in keyof PlannedServer]: PlannedServer[Key] }[] = [];
  const taken = new Set(configured.map(({ id }) => id));
  for (const skill of skills) {
    for (const declared of skill.servers) {
      const server = demandingLess(choose(declared));
      const spec = satisfiedBy(server, configured);
      const known = planned.find((each) =>
        spec === undefined ? each.configured === undefined && isSame(each.server, server) : each.configured === spec,
      );
      if (known !== undefined) {
        known.neededBy = [...new Set([...known.neededBy, skill.name])];
        continue;
      }
      const id = spec?.id ?? freeId(server.name, taken);
      taken.add(id);
      planned.push({ id, server, skill, neededBy: [skill.name], configured: spec });
    }
  }
  return planned;
}

/** A parameter that is declared and that the template has no place for can change nothing, so nobody need give it. */
export function hasPlaceFor({ template }: RequiredServer, parameter: string): boolean {
  return template === undefined || parametersUsed(template).has(parameter);
}

function demandingLess(server: RequiredServer): RequiredServer {
  const parameters = server.parameters.map((each) =>
    hasPlaceFor(server, each.name) ? each : { ...each, required: false },
  );
  return { ...server, parameters };
}

/**
 * The same thing asked for twice, so that its values are asked for once. Under another name it may get other values;
 * whether the two come to the same is seen when those are known. A template with the skill's own folder in it is another
 * program for each skill.
 */
function isSame(a: RequiredServer, b: RequiredServer): boolean {
  const what = ({ name, template, parameters }: RequiredServer): string =>
    canonicalJson({ name, template, parameters });
  return what(a) === what(b) && !/SKILL_DIR|\{baseDir\}/.test(what(a));
}

/** A name in a skill is anybody's text. */
function freeId(name: string, taken: ReadonlySet<string>): string {
  const plain = name
    .replaceAll(/[^A-Za-z0-9._@-]+/g, "-")
    .replace(/^[^A-Za-z0-9]+/, "")
    .slice(0, 56);
  const base = ServerIdSchema.safeParse(plain).success ? plain : "server";
  for (let number = 1; ; number++) {
    const id = number === 1 ? base : `${base}-${number}`;
    if (!taken.has(id)) return id;
  }
}

export function missingServers(servers: readonly PlannedServer[]): PlannedServer[] {
  return servers.filter(({ configured }) => configured === undefined);
}
