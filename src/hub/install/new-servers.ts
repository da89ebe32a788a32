/** From the servers that are missing and their values to entries of the config, each server once. */
import type { ServerEntryInput, ServerSpec } from "../../model/server-spec.ts";
import type { Skill } from "../../model/skill.ts";
import { skillId } from "../../skills/registry/skill-id.ts";
import { entryOf, sameServer } from "../../skills/servers/resolve.ts";
import { type InstallPlace, variablesFor } from "./install-place.ts";
import type { Installed } from "./installed-file.ts";
import type { ParameterValues } from "./parameters.ts";
import type { PlannedSkill } from "./plan-install.ts";
import type { PlannedServer } from "./required-servers.ts";
import { skillHome } from "./skill-copies.ts";

export interface NewServer {
  readonly planned: PlannedServer;
  readonly entry: ServerEntryInput;
  /** Whether it runs from the skill's own files. */
  readonly usesSkillFiles: boolean;
}

export interface ResolvedServers {
  readonly added: readonly NewServer[];
  /** Id in the config of each server that is needed, in their order. */
  readonly ids: ReadonlyMap<PlannedServer, string>;
}

/** `valuesOf` gives sensitive ones as references. */
export function resolveServers(
  servers: readonly PlannedServer[],
  place: InstallPlace,
  valuesOf: (server: PlannedServer) => Readonly<Record<string, string>>,
): ResolvedServers {
  const added: NewServer[] = [];
  const ids = new Map<PlannedServer, string>();
  for (const planned of servers) {
    if (planned.configured !== undefined) {
      ids.set(planned, planned.id);
      continue;
    }
    const home = skillHome(place.home, planned.skill);
    const entry = ofSkill(entryOf(planned.server, valuesOf(planned), variablesFor(place, home)), planned.skill);
    // Two skills may ask for the same thing in other words.
    const same =
      place.config.servers.find((spec) => sameServer(entryOfSpec(spec), entry))?.id ??
      added.find((each) => sameServer(each.entry, entry))?.planned.id;
    ids.set(planned, same ?? planned.id);
    if (same === undefined)
      added.push({ planned, entry, usesSkillFiles: JSON.stringify(entry).includes(jsonText(home)) });
  }
  return { added, ids };
}

/** Written down in the entry itself, because it decides about the cage from the first start on, and in every copy. */
function ofSkill(entry: ServerEntryInput, { name, dialect }: Skill): ServerEntryInput {
  return entry.url === undefined ? { ...entry, skill: skillId(name, dialect) } : entry;
}

function entryOfSpec({ command, args, env, cwd, url, headers, auth, sandbox }: ServerSpec): ServerEntryInput {
  return { command, args, env, cwd, url, headers, auth, sandbox };
}

/** As it stands inside a JSON string: backslashes are doubled there. */
function jsonText(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

/** By name of the skill: the copy that its servers run from, where they do or did before. */
export function homesOf(
  skills: readonly PlannedSkill[],
  { added }: ResolvedServers,
  home: string,
  before: Installed,
): ReadonlyMap<string, string> {
  const using = skills.filter(
    ({ id, skill }) =>
      added.some(({ planned, usesSkillFiles }) => usesSkillFiles && planned.skill === skill) ||
      (Object.hasOwn(before, id) && before[id]?.home !== undefined),
  );
  return new Map(using.map(({ skill }) => [skill.name, skillHome(home, skill)]));
}

/** References in the place of sensitive values that are not stored, for a look at what would be written. */
export function previewValues(
  server: PlannedServer,
  values: ParameterValues,
  referenceFor: (parameter: string) => string,
): Record<string, string> {
  const own = { ...values.get(server.id) };
  for (const { name, sensitive } of server.server.parameters) {
    if (sensitive && own[name] !== undefined) own[name] = referenceFor(name);
  }
  return own;
}
