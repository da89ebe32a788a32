/** The servers that the skills of an install need, which of them are configured, and values for their parameters. */
import { join, resolve } from "node:path";
import { ToolcribError } from "../../model/errors.ts";
import { canonicalJson } from "../../model/json.ts";
import { ServerIdSchema, type ServerSpec } from "../../model/server-spec.ts";
import type { RequiredServer, ServerParameter, Skill } from "../../model/skill.ts";
import { parametersUsed } from "../../skills/servers/placeholders.ts";
import { skillId } from "../../skills/registry/skill-id.ts";
import { findMatchingServer, parameterValue } from "../../skills/servers/match-servers.ts";
import type { ServerVariables } from "../../skills/servers/placeholders.ts";
import { isOwnProgram, resolveDefault } from "../../skills/servers/server-entry.ts";
import { environmentValue, isCredential, isHarmless } from "./environment.ts";

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
      const server = withoutUnusedRequirements(choose(declared));
      const spec = findMatchingServer(
        server,
        configured.filter((each) => !isSetUpOtherwise(each, server, skill)),
      );
      const known = planned.find((each) =>
        spec === undefined
          ? each.configured === undefined && isSameRequirement(each.server, server)
          : each.configured === spec,
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

/**
 * Whether another skill's server is another program under the same name, or has another value for a parameter than this
 * skill wants by default. What the user configured is taken as it is.
 */
export function isSetUpOtherwise(
  spec: ServerSpec,
  server: RequiredServer,
  skill: Pick<Skill, "name" | "dialect">,
): boolean {
  const { template, parameters } = server;
  if (spec.skill === undefined || spec.skill === skillId(skill.name, skill.dialect) || template === undefined)
    return false;
  // Authors choose the name: alone it says nothing of what another skill started under it.
  if (findMatchingServer({ ...server, name: "" }, [spec]) === undefined) return true;
  return parameters.some(({ name, default: wanted }) => {
    const value = wanted === undefined || wanted.includes("${") ? undefined : parameterValue(spec, template, name);
    return value !== undefined && value !== wanted;
  });
}

/** A declared parameter that the template does not use needs no value. */
function usesParameter({ template }: RequiredServer, parameter: string): boolean {
  return template === undefined || parametersUsed(template).has(parameter);
}

function withoutUnusedRequirements(server: RequiredServer): RequiredServer {
  const parameters = server.parameters.map((each) =>
    usesParameter(server, each.name) ? each : { ...each, required: false },
  );
  return { ...server, parameters };
}

/**
 * The same thing asked for twice, so that its values are asked for once. Under another name it may get other values;
 * whether the two come to the same is seen when those are known. A template with the skill's own folder in it is another
 * program for each skill.
 */
function isSameRequirement(a: RequiredServer, b: RequiredServer): boolean {
  const what = ({ name, template, parameters }: RequiredServer): string =>
    canonicalJson({ name, template, parameters });
  const isOwn = isOwnProgram(a.template?.command ?? "") || /SKILL_DIR|\{baseDir\}/.test(what(a));
  return what(a) === what(b) && !isOwn;
}

/** The name in a skill is untrusted text. */
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

export interface ParameterQuestion {
  readonly server: PlannedServer;
  /** Sensitive also if what is offered looks like a credential. */
  readonly parameter: ServerParameter;
  /** The value of an empty answer: the user's variable of that name, or the resolved default. */
  readonly offered?: string;
  /** It is the variable. */
  readonly fromEnvironment: boolean;
}

/** Resolves with what was typed; empty for what is offered, or for nothing where it is optional. */
export type AskForValue = (question: ParameterQuestion) => Promise<string>;

export interface CollectOptions {
  /** `K=V` and `server.K=V`; `K` and `server.K` for the variable of that name. */
  readonly set: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  readonly userHome: string;
  readonly variables: (server: PlannedServer) => ServerVariables;
  /** Ids that no new server can have. */
  readonly configuredIds?: readonly string[];
  /** Absent where no one can be asked. */
  readonly ask?: AskForValue | undefined;
}

/** By server id, then by parameter. Sensitive ones are plain text here; they are stored before anything is written. */
export type ParameterValues = ReadonlyMap<string, Readonly<Record<string, string>>>;

export interface TakenVariable {
  readonly server: string;
  readonly name: string;
}

interface CollectedValues {
  readonly values: ParameterValues;
  /** All that were given, in their order; parameters whose values turned out to be credentials are sensitive there. */
  readonly servers: readonly PlannedServer[];
  /** Variables of the user's environment that servers get. */
  readonly taken: readonly TakenVariable[];
  readonly warnings: readonly string[];
}

interface MissingValue {
  readonly server: PlannedServer;
  readonly parameter: ServerParameter;
  /** The user has a variable of that name, which may be meant for something else. */
  readonly isSet: boolean;
}

/** For those that are not configured yet. Throws `invalid_arguments` that lists every missing value at once. */
export async function collectValues(
  needed: readonly PlannedServer[],
  options: CollectOptions,
): Promise<CollectedValues> {
  const given = new GivenValues(options.set, needed, options.env);
  const values = new Map<string, Readonly<Record<string, string>>>();
  const taken: TakenVariable[] = [];
  const missing: MissingValue[] = [];
  const servers: PlannedServer[] = [];
  const ids = new Set([...needed.map(({ id }) => id), ...(options.configuredIds ?? [])]);
  for (const wanted of needed) {
    const planned = given.isOtherwise(wanted, options)
      ? { ...wanted, id: freeId(wanted.server.name, ids), configured: undefined }
      : wanted;
    ids.add(planned.id);
    if (planned.configured !== undefined) {
      servers.push(planned);
      continue;
    }
    const own: Record<string, string> = {};
    const parameters: ServerParameter[] = [];
    for (const declared of planned.server.parameters) {
      const { name } = declared;
      if (!usesParameter(planned.server, name)) {
        parameters.push(declared);
        continue;
      }
      const found = given.of(wanted.id, name) ?? (await findOrAskValue(planned, declared, options));
      const parameter = found === undefined ? declared : withSensitivity(declared, found.value);
      parameters.push(parameter);
      if (found !== undefined && found.value !== "") {
        own[name] = parameter.sensitive ? found.value : expandPath(found.value, options);
        if (found.taken) taken.push({ server: planned.id, name });
      } else if (parameter.required && resolveDefault(parameter, options.variables(planned)) === undefined) {
        missing.push({ server: planned, parameter, isSet: variableOf(parameter, options.env) !== undefined });
      }
    }
    values.set(planned.id, own);
    servers.push({ ...planned, server: { ...planned.server, parameters } });
  }
  if (missing.length > 0) throw missingValues(missing);
  return { values, servers, taken, warnings: given.warnings(servers) };
}

/** Under its own name, or another that people have it under. */
function variableOf({ name, aliases = [] }: ServerParameter, env: NodeJS.ProcessEnv): string | undefined {
  for (const each of [name, ...aliases]) {
    const value = environmentValue(env, each);
    if (value !== undefined) return value;
  }
  return undefined;
}

async function findOrAskValue(
  planned: PlannedServer,
  declared: ServerParameter,
  { env, ask, variables }: CollectOptions,
): Promise<GivenValue | undefined> {
  const { name, required } = declared;
  const variable = variableOf(declared, env);
  const fallback = resolveDefault(declared, variables(planned));
  const byDefault = fallback === undefined ? undefined : { value: fallback, taken: false };
  if (ask === undefined) {
    const isTaken = variable !== undefined && required && !declared.sensitive && isHarmless(name, variable);
    return isTaken ? { value: variable, taken: true } : byDefault;
  }
  const offered = variable !== undefined && required ? { value: variable, taken: true } : byDefault;
  const typed = await ask({
    server: planned,
    parameter: offered === undefined ? declared : withSensitivity(declared, offered.value),
    ...(offered === undefined ? {} : { offered: offered.value }),
    fromEnvironment: offered?.taken === true,
  });
  return typed === "" ? offered : { value: typed, taken: false };
}

/** The author of a skill may know less than the value shows. */
function withSensitivity(parameter: ServerParameter, value: string): ServerParameter {
  if (parameter.sensitive || value === parameter.default || !isCredential(parameter.name, value)) return parameter;
  const { default: _default, ...rest } = parameter;
  return { ...rest, sensitive: true };
}

/** No shell expands the value, and the server runs in another folder, so paths are made absolute. */
function expandPath(value: string, { cwd, userHome }: CollectOptions): string {
  if (value === "~" || /^~[/\\]/.test(value)) return join(userHome, value.slice(1));
  return /^\.{1,2}(?:[/\\]|$)/.test(value) ? resolve(cwd, value) : value;
}

function missingValues(missing: readonly MissingValue[]): ToolcribError {
  const lines = missing.map(({ server, parameter: { name, description, sensitive, example }, isSet }) => {
    const about = [
      description,
      ...(sensitive ? ["sensitive"] : []),
      ...(example === undefined || sensitive ? [] : [`for example ${example}`]),
      ...(isSet ? [`set in your environment, and taken from there only with --set ${name}`] : []),
    ].filter((part) => part !== undefined);
    return `  ${server.id}.${name}${about.length === 0 ? "" : `: ${about.join("; ").replaceAll(".; ", "; ")}`}`;
  });
  const names = (wanted: (each: MissingValue) => boolean): string[] => [
    ...new Set(missing.filter(wanted).map(({ parameter }) => parameter.name)),
  ];
  const plain = names(({ parameter, isSet }) => !parameter.sensitive && !isSet);
  const secret = names(({ parameter, isSet }) => parameter.sensitive && !isSet);
  const there = names(({ isSet }) => isSet);
  return new ToolcribError("invalid_arguments", `Values are missing for the servers:\n${lines.join("\n")}`, {
    hint: [
      ...(plain.length === 0 ? [] : [`Give ${plain.map((name) => `--set ${name}=…`).join(" ")}.`]),
      ...(secret.length === 0
        ? []
        : [
            `Put ${secret.join(", ")} into the environment and give ${secret.map((name) => `--set ${name}`).join(" ")}, ` +
              "or run it on a terminal.",
          ]),
      ...(there.length === 0
        ? []
        : [`If your own ${there.join(", ")} may go there: ${there.map((name) => `--set ${name}`).join(" ")}.`]),
    ].join(" "),
    details: {
      missing: missing.map(({ server, parameter: { name, description, sensitive }, isSet }) => ({
        server: server.id,
        name,
        sensitive,
        description,
        ...(isSet ? { inEnvironment: true } : {}),
      })),
    },
  });
}

/** `taken`: it is the variable of the parameter's name. */
interface GivenValue {
  readonly value: string;
  readonly taken: boolean;
}

const SET_USAGE = "--set takes NAME=value or server.NAME=value, or NAME alone for the variable of your environment.";

class GivenValues {
  readonly #values = new Map<string, GivenValue>();
  readonly #exact = new Set<string>();
  readonly #warnings = new Set<string>();
  /** By the configured server that has the parameter. */
  readonly #unused = new Map<string, string>();
  readonly #env: NodeJS.ProcessEnv;

  constructor(set: readonly string[], servers: readonly PlannedServer[], env: NodeJS.ProcessEnv) {
    this.#env = env;
    const unknown: string[] = [];
    for (const text of set) {
      const at = text.indexOf("=");
      const key = (at === -1 ? text : text.slice(0, at)).trim();
      const meant = matchParameters(key, servers);
      // What was typed is not repeated: it may be a secret.
      if (key === "" || (at === -1 && meant.length === 0)) throw new ToolcribError("invalid_arguments", SET_USAGE);
      if (meant.length === 0) unknown.push(key);
      for (const each of meant) this.#take(each, at === -1 ? undefined : text.slice(at + 1));
      const [first] = meant;
      if (first !== undefined && meant.every(({ server }) => server.configured !== undefined)) {
        const { id } = first.server;
        this.#unused.set(id, `${key} is not used: the server ${id} is already configured, and is not changed.`);
      } else if (
        first !== undefined &&
        !meant.some(({ server: { server }, parameter }) => usesParameter(server, parameter.name))
      ) {
        this.#warnings.add(`${key} is not used: the skill declares it, but its server does not use it.`);
      }
    }
    if (unknown.length > 0) throw unknownNames(unknown, servers);
  }

  /** Whether a value was given that the configured server does not have. */
  isOtherwise({ id, server, configured }: PlannedServer, options: CollectOptions): boolean {
    const { template } = server;
    if (configured === undefined || template === undefined) return false;
    return server.parameters.some(({ name, sensitive }) => {
      const value = sensitive ? undefined : this.of(id, name)?.value;
      const present = value === undefined ? undefined : parameterValue(configured, template, name);
      return value !== undefined && present !== undefined && present !== expandPath(value, options);
    });
  }

  of(id: string, name: string): GivenValue | undefined {
    return this.#values.get(JSON.stringify([id, name]));
  }

  /** @param servers As they will be. */
  warnings(servers: readonly PlannedServer[]): string[] {
    const configured = new Set(servers.filter((server) => server.configured !== undefined).map(({ id }) => id));
    const unused = [...this.#unused].flatMap(([id, warning]) => (configured.has(id) ? [warning] : []));
    return [...unused, ...this.#warnings];
  }

  #take({ server, parameter, isExact }: MatchedParameter, typed: string | undefined): void {
    const { name, sensitive } = parameter;
    const place = JSON.stringify([server.id, name]);
    const value = typed ?? variableOf(parameter, this.#env);
    if (value === undefined || (value === "" && typed === undefined)) {
      throw new ToolcribError("invalid_arguments", `${name} is not set in your environment.`, {
        hint: `Set it, or give --set ${name}=value.`,
      });
    }
    // The one that names the server counts, whichever comes first.
    if (isExact || !this.#exact.has(place)) this.#values.set(place, { value, taken: typed === undefined });
    if (isExact) this.#exact.add(place);
    if (!sensitive || typed === undefined) return;
    this.#warnings.add(
      `The value of ${name} was on the command line, where other users and your shell history can see it. ` +
        `To keep it private, answer the prompt, or use --set ${name} with the variable ${name}.`,
    );
  }
}

interface MatchedParameter {
  readonly server: PlannedServer;
  readonly parameter: ServerParameter;
  /** Whether the key names the server too. */
  readonly isExact: boolean;
}

function matchParameters(key: string, servers: readonly PlannedServer[]): MatchedParameter[] {
  return servers.flatMap((server) =>
    server.server.parameters.flatMap((parameter): MatchedParameter[] => {
      const names = [parameter.name, ...(parameter.aliases ?? [])];
      const isExact = names.some((name) => key === `${server.id}.${name}` || key === `${server.server.name}.${name}`);
      return isExact || names.includes(key) ? [{ server, parameter, isExact }] : [];
    }),
  );
}

function unknownNames(names: readonly string[], servers: readonly PlannedServer[]): ToolcribError {
  const known = servers.flatMap(({ id, server }) => server.parameters.map(({ name }) => `${id}.${name}`));
  return new ToolcribError("invalid_arguments", `No server of the skill has a parameter ${names.join(", ")}.`, {
    hint: known.length === 0 ? "There are none to set." : `There are ${known.join(", ")}.`,
  });
}
