/** Values for the parameters of new servers: from `--set`, a person, the environment, and defaults. */
import { join, resolve } from "node:path";
import { ToolcribError } from "../../model/errors.ts";
import type { ServerParameter } from "../../model/skill.ts";
import { defaultOf, type ServerVariables } from "../../skills/servers/resolve.ts";
import { environmentValue, isCredential, isHarmless } from "./environment.ts";
import { type Given, GivenValues } from "./given-values.ts";
import { hasPlaceFor, type PlannedServer } from "./required-servers.ts";

export interface Question {
  readonly server: PlannedServer;
  /** Sensitive also if what is offered looks like a credential. */
  readonly parameter: ServerParameter;
  /** What an empty answer stands for: the user's variable of that name, or the default with its variables filled in. */
  readonly offered?: string;
  /** It is the variable. */
  readonly fromEnvironment: boolean;
}

/** Resolves with what was typed; empty for what is offered, or for nothing where it is optional. */
export type Ask = (question: Question) => Promise<string>;

export interface CollectOptions {
  /** `K=V` and `server.K=V`; `K` and `server.K` for the variable of that name. */
  readonly set: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  readonly userHome: string;
  readonly variables: (server: PlannedServer) => ServerVariables;
  /** Absent where nobody can be asked. */
  readonly ask?: Ask | undefined;
}

/** By server id, then by parameter. Sensitive ones are plain text here; they are stored before anything is written. */
export type ParameterValues = ReadonlyMap<string, Readonly<Record<string, string>>>;

export interface TakenVariable {
  readonly server: string;
  readonly name: string;
}

export interface CollectedValues {
  readonly values: ParameterValues;
  /** All that were given, in their order; parameters whose values turned out to be credentials are sensitive there. */
  readonly servers: readonly PlannedServer[];
  /** What goes from the user's environment to whom. */
  readonly taken: readonly TakenVariable[];
  readonly warnings: readonly string[];
}

interface Missing {
  readonly server: PlannedServer;
  readonly parameter: ServerParameter;
  /** The user has a variable of that name, which somebody else may have put there for something else. */
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
  const missing: Missing[] = [];
  const servers: PlannedServer[] = [];
  for (const planned of needed) {
    if (planned.configured !== undefined) {
      servers.push(planned);
      continue;
    }
    const own: Record<string, string> = {};
    const parameters: ServerParameter[] = [];
    for (const declared of planned.server.parameters) {
      const { name } = declared;
      if (!hasPlaceFor(planned.server, name)) {
        parameters.push(declared);
        continue;
      }
      const found = given.of(planned.id, name) ?? (await otherwise(planned, declared, options));
      const parameter = found === undefined ? declared : judged(declared, found.value);
      parameters.push(parameter);
      if (found !== undefined && found.value !== "") {
        own[name] = parameter.sensitive ? found.value : asPath(found.value, options);
        if (found.taken) taken.push({ server: planned.id, name });
      } else if (parameter.required && defaultOf(parameter, options.variables(planned)) === undefined) {
        missing.push({ server: planned, parameter, isSet: environmentValue(options.env, name) !== undefined });
      }
    }
    values.set(planned.id, own);
    servers.push({ ...planned, server: { ...planned.server, parameters } });
  }
  if (missing.length > 0) throw missingValues(missing);
  return { values, servers, taken, warnings: given.warnings() };
}

async function otherwise(
  planned: PlannedServer,
  declared: ServerParameter,
  { env, ask, variables }: CollectOptions,
): Promise<Given | undefined> {
  const { name, required } = declared;
  const variable = environmentValue(env, name);
  const fallback = defaultOf(declared, variables(planned));
  const byDefault = fallback === undefined ? undefined : { value: fallback, taken: false };
  if (ask === undefined) {
    const isTaken = variable !== undefined && required && !declared.sensitive && isHarmless(name, variable);
    return isTaken ? { value: variable, taken: true } : byDefault;
  }
  const offered = variable !== undefined && required ? { value: variable, taken: true } : byDefault;
  const typed = await ask({
    server: planned,
    parameter: offered === undefined ? declared : judged(declared, offered.value),
    ...(offered === undefined ? {} : { offered: offered.value }),
    fromEnvironment: offered?.taken === true,
  });
  return typed === "" ? offered : { value: typed, taken: false };
}

/** The author of a skill may know less than the value shows. */
function judged(parameter: ServerParameter, value: string): ServerParameter {
  if (parameter.sensitive || value === parameter.default || !isCredential(parameter.name, value)) return parameter;
  const { default: _default, ...rest } = parameter;
  return { ...rest, sensitive: true };
}

/** No shell stands between the value and the server, and the server runs in another folder: so paths are made whole. */
function asPath(value: string, { cwd, userHome }: CollectOptions): string {
  if (value === "~" || /^~[/\\]/.test(value)) return join(userHome, value.slice(1));
  return /^\.{1,2}(?:[/\\]|$)/.test(value) ? resolve(cwd, value) : value;
}

function missingValues(missing: readonly Missing[]): ToolcribError {
  const lines = missing.map(({ server, parameter: { name, description, sensitive, example }, isSet }) => {
    const about = [
      description,
      ...(sensitive ? ["sensitive"] : []),
      ...(example === undefined || sensitive ? [] : [`for example ${example}`]),
      ...(isSet ? [`set in your environment, and taken from there only with --set ${name}`] : []),
    ].filter((part) => part !== undefined);
    return `  ${server.id}.${name}${about.length === 0 ? "" : `: ${about.join("; ")}`}`;
  });
  const names = (wanted: (each: Missing) => boolean): string[] => [
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
