/**
 * `skills.autoStart`: adds the servers that imported skills require and the config does not have. Not those of skills in folders
 * of the config: anyone who can write there could start programs.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";
import { userHome } from "../../config/find-config.ts";
import { withServerDefaults } from "../../config/server-defaults.ts";
import { asToolcribError, ToolcribError } from "../../model/errors.ts";
import type { LoadedConfig } from "../../model/loaded-config.ts";
import {
  type SandboxEntry,
  sandboxKindOf,
  ServerEntrySchema,
  ServerIdSchema,
  type ServerSpec,
} from "../../model/server-spec.ts";
import type { ContainerTemplate, RequiredServer } from "../../model/skill.ts";
import { type OfferedSkill, setupCommand } from "../../skills/offer/offered-skill.ts";
import { findMatchingServer, isSameServer } from "../../skills/servers/match-servers.ts";
import { resolveDefault, resolveServerEntry, withContainer } from "../../skills/servers/server-entry.ts";
import { type ContainerEngine, containerEngine, lastLines } from "../../upstream/sandbox/container-engine.ts";
import { environmentValue, isHarmless } from "../install/environment.ts";
import { isSetUpOtherwise } from "../install/required-servers.ts";
import { scanServerEntry } from "../install/scan-server-entry.ts";

export interface SkillServersOptions {
  readonly env: NodeJS.ProcessEnv;
  readonly warn: (message: string) => void;
}

/** The command that sets the server up with these variables. */
function installLine(skill: OfferedSkill, names: readonly string[]): string {
  const command = setupCommand(skill) ?? `toolcrib skill install ${skill.from} --with-mcp`;
  return [command, ...names.map((name) => `--set ${name}`)].join(" ");
}

/** An install writes it down under an id that stays the same, which rules can name. */
function setUpApart(skill: OfferedSkill): { readonly hint: string } {
  return { hint: `${installLine(skill, [])} sets it up as a server of its own.` };
}

/** Warns about servers that cannot be started, and adds the others. */
export async function withAutoStartedServers(
  config: LoadedConfig,
  skills: readonly OfferedSkill[],
  { env, warn }: SkillServersOptions,
): Promise<LoadedConfig> {
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
      const why = kept === "" ? "" : `. ${kept} of your environment was not passed on, because you did not name it`;
      throw new ToolcribError("invalid_config", `it needs ${lacking.join(", ")}${why}`, {
        hint: `${install} sets the server up.`,
      });
    }
    if (withheld.length > 0) {
      warn(
        `The server ${server.name} of the skill ${skill.facts.name} runs without ${withheld.join(", ")} of your ` +
          `environment, because you did not name it. ${install} passes it on.`,
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
    return withServerDefaults(spec, config);
  };

  for (const skill of imported) {
    for (const declared of skill.facts.servers) {
      const { server, notice } = choose(declared);
      const usable = config.servers.filter((spec) => !isSetUpOtherwise(spec, server, skill.facts));
      if (findMatchingServer(server, usable) !== undefined) continue;
      if (notice !== undefined) warn(notice);
      try {
        if (server.template === undefined)
          throw new ToolcribError("invalid_config", "the skill does not say how to start it");
        if (config.servers.length + added.length >= config.config.limits.servers) {
          throw new ToolcribError("invalid_config", "limits.servers is reached");
        }
        const spec = specOf(skill, server);
        if (added.some((other) => isSameServer(other, spec))) continue;
        if (config.servers.some(({ id }) => id === spec.id)) {
          throw new ToolcribError("conflict", "the config has a different server with that name", setUpApart(skill));
        }
        if (added.some(({ id }) => id === spec.id)) {
          throw new ToolcribError(
            "conflict",
            "another skill requires a different server with that name",
            setUpApart(skill),
          );
        }
        added.push(spec);
      } catch (error) {
        const { message, hint } = asToolcribError(error);
        const more = hint === undefined ? "" : ` ${hint}`;
        warn(`The server ${server.name} of the skill ${skill.facts.name} is not started: ${message}.${more}`);
      }
    }
  }
  return added.length === 0 ? config : { ...config, servers: [...config.servers, ...added] };
}

export interface ChosenServer {
  readonly server: RequiredServer;
  /** Explains the choice to the user. */
  readonly notice?: string;
}

/**
 * Decides whether a server that a skill offers as an image runs in a container. Looks for an engine now, and only if one of the
 * servers is an image.
 */
export async function chooseContainers(
  servers: readonly RequiredServer[],
  { config }: Pick<LoadedConfig, "config">,
  env: NodeJS.ProcessEnv,
): Promise<(server: RequiredServer) => ChosenServer> {
  if (!servers.some(({ docker }) => docker !== undefined)) return (server) => ({ server });
  const missing = await containerEngine(config.containers ?? {}, env)
    .then((engine) => whyNothingRuns(engine, config.containers?.flags ?? []))
    .catch((error: unknown) => asToolcribError(error).message);
  const sandbox = config.skills.sandbox ?? config.sandbox;
  return (server) => chooseContainer(server, missing, sandbox);
}

/** An archive without files, which every engine imports as an image. */
const EMPTY_ARCHIVE = new Uint8Array(1024);
/** The exit code of both engines for a program that the image does not have: they got as far as starting it. */
const NO_SUCH_PROGRAM = 127;

/** Engines answer also where the system lets them run nothing, which only running something shows. */
async function whyNothingRuns(engine: ContainerEngine, flags: readonly string[]): Promise<string | undefined> {
  const dir = await mkdtemp(join(tmpdir(), "toolcrib-probe-"));
  const image = `localhost/${basename(dir).toLowerCase()}`;
  try {
    const archive = join(dir, "empty.tar");
    await writeFile(archive, EMPTY_ARCHIVE);
    for (const args of [
      ["import", archive, image],
      ["run", "--rm", "--network", "none", ...flags, image, "/nothing"],
    ]) {
      const { code, stderr } = await engine.run(args);
      if (code !== 0 && code !== NO_SUCH_PROGRAM) {
        const said = lastLines(stderr, 2) || `\`${engine.program} ${args[0] ?? ""}\` ended with code ${code}`;
        return `${engine.program} answers but cannot run containers: ${said}`;
      }
    }
    return undefined;
  } finally {
    await engine.run(["rmi", "--force", image]).catch(() => undefined);
    await rm(dir, { recursive: true, force: true });
  }
}

function chooseContainer(
  server: RequiredServer,
  missing: string | undefined,
  sandbox: SandboxEntry | undefined,
): ChosenServer {
  const { name, docker, template } = server;
  const kind = sandbox === undefined ? "none" : sandboxKindOf(sandbox);
  // Another sandbox for skills takes precedence, if the server can run in it.
  if (docker === undefined || (kind === "bubblewrap" && template !== undefined)) return { server };
  const { image, port } = docker;
  const what = `The server ${name}`;
  const bounds = sandbox === undefined || kind === "none" ? {} : boundsOf(sandbox);
  const why = port !== undefined && bounds.network === "none" ? NO_NETWORK : missing;
  if (why === undefined) {
    return {
      server: withContainer(server, bounds),
      notice: `${what} runs in a container of the image ${image}. ${networkText(port, bounds.network)}`,
    };
  }
  if (template === undefined) return { server, notice: `${what} is available only as the image ${image}. ${why}` };
  return {
    server,
    notice: `${what} does not run in a container of the image ${image}, but with the command of the skill. ${why}`,
  };
}

const NO_NETWORK =
  "Its port cannot be published, because servers of skills have no network by `sandbox`. Set " +
  '"network": "host" to allow it.';

/** An image that a skill chose must not escape the operator's sandbox for skills. */
function boundsOf(sandbox: SandboxEntry): Omit<ContainerTemplate, "image" | "port" | "write"> {
  if (typeof sandbox === "string") return { network: "none" };
  const { network, memory, cpus, pids, timeout } = sandbox;
  return { network, memory, cpus, pids, timeout };
}

function networkText(port: number | undefined, network: "none" | "host" | undefined): string {
  if (port !== undefined) return "It has a network, because its port is published.";
  if (network === "host") return "It has a network, as `sandbox` says.";
  return 'It has no network unless `sandbox` of its entry says "network": "host".';
}
