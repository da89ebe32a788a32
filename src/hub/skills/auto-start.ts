/**
 * `skills.autoStart`: servers that imported skills require and no server of the config stands in for, as if the config had
 * them. Not those of skills in folders that are offered as they are: whoever can write there could start programs.
 */
import { resolve } from "node:path";
import type { LoadedConfig } from "../../config/load-config.ts";
import { withSandbox } from "../../config/sandbox-defaults.ts";
import { userHome } from "../../config/find-config.ts";
import { asToolcribError, ToolcribError } from "../../model/errors.ts";
import { ServerEntrySchema, ServerIdSchema, type ServerSpec } from "../../model/server-spec.ts";
import type { RequiredServer } from "../../model/skill.ts";
import type { OfferedSkill } from "../../skills/offer/offered-skill.ts";
import { findMatchingServer, isSameServer } from "../../skills/servers/match-servers.ts";

export interface SkillServersOptions {
  readonly env: NodeJS.ProcessEnv;
  readonly warn: (message: string) => void;
}

/** What a person types to have the server with these variables. */
function installLine({ manifest, facts }: OfferedSkill, names: readonly string[]): string {
  const source = manifest?.source ?? facts.name;
  return ["toolcrib skill install", source, "--with-mcp", ...names.map((name) => `--set ${name}`)].join(" ");
}

/** A server that cannot be brought up as it stands is warned about; the others are. */
export async function withAutoStartedServers(
  config: LoadedConfig,
  skills: readonly OfferedSkill[],
  { env, warn }: SkillServersOptions,
): Promise<LoadedConfig> {
  const [
    { resolveDefault, resolveServerEntry },
    { scanServerEntry },
    { environmentValue, isHarmless },
    { chooseContainers },
  ] = await Promise.all([
    import("../../skills/servers/server-entry.ts"),
    import("../install/scan-server-entry.ts"),
    import("../install/environment.ts"),
    import("./container-choice.ts"),
  ]);
  const imported = skills.filter(({ manifest }) => manifest !== undefined);
  const choose = await chooseContainers(
    imported.flatMap(({ facts }) => facts.servers),
    config,
    env,
  );
  const workspace = config.config.workspaceDir;
  const added: ServerSpec[] = [];

  const specOf = (skill: OfferedSkill, server: RequiredServer): ServerSpec => {
    const baseDir = skill.dir ?? config.baseDir;
    const variables = {
      CWD: process.cwd(),
      WORKSPACE: workspace === undefined ? process.cwd() : resolve(config.baseDir, workspace),
      HOME: userHome(env),
      SKILL_DIR: baseDir,
    };
    const values: Record<string, string> = {};
    const lacking: string[] = [];
    const withheld: string[] = [];
    for (const parameter of server.parameters) {
      const { name, sensitive, required } = parameter;
      // A skill must not get a secret by asking for a variable of that name: those are set up with `skill install`.
      const variable = environmentValue(env, name);
      const isGiven = variable !== undefined && !sensitive && isHarmless(name, variable);
      const value = isGiven ? variable : resolveDefault(parameter, variables);
      if (value !== undefined) values[name] = value;
      else if (required) lacking.push(name);
      if (variable !== undefined && !isGiven) withheld.push(name);
    }
    const install = installLine(skill, withheld);
    if (lacking.length > 0) {
      const kept = lacking.filter((name) => withheld.includes(name)).join(", ");
      const why = kept === "" ? "" : `. ${kept} of your environment was not handed over, because you did not name it`;
      throw new ToolcribError("invalid_config", `it needs ${lacking.join(", ")}${why}`, {
        hint: `${install} sets the server up.`,
      });
    }
    if (withheld.length > 0) {
      warn(
        `The server ${server.name} of the skill ${skill.facts.name} runs without ${withheld.join(", ")} of your ` +
          `environment, because you did not name it. ${install} hands it over.`,
      );
    }
    const id = ServerIdSchema.parse(server.name);
    const resolved = resolveServerEntry(server, values, variables);
    const refusals = scanServerEntry(id, resolved).filter(({ severity }) => severity === "refuse");
    if (refusals.length > 0) throw new ToolcribError("blocked", refusals.map(({ message }) => message).join("; "));
    const entry = ServerEntrySchema.parse(resolved);
    const spec = {
      ...entry,
      id,
      origin: { file: `${baseDir}/SKILL.md`, dialect: "skill" },
      baseDir,
      ownFolder: skill.dir ?? null,
    };
    return withSandbox(spec, config);
  };

  for (const skill of imported) {
    for (const declared of skill.facts.servers) {
      const { server, notice } = choose(declared);
      if (findMatchingServer(server, config.servers) !== undefined) continue;
      if (notice !== undefined) warn(notice);
      try {
        if (server.template === undefined) throw new ToolcribError("invalid_config", "nobody knows how it is started");
        if (config.servers.length + added.length >= config.config.limits.servers) {
          throw new ToolcribError("invalid_config", "limits.servers is reached");
        }
        const spec = specOf(skill, server);
        if (added.some((other) => isSameServer(other, spec))) continue;
        if (added.some(({ id }) => id === spec.id)) {
          throw new ToolcribError("conflict", "another skill requires another server of that name");
        }
        added.push(spec);
      } catch (error) {
        const { message, hint } = asToolcribError(error);
        const more = hint === undefined ? "" : ` ${hint}`;
        warn(`The server ${server.name} of the skill ${skill.facts.name} is not brought up: ${message}.${more}`);
      }
    }
  }
  return added.length === 0 ? config : { ...config, servers: [...config.servers, ...added] };
}
