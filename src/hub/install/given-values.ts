/** What `--set` gives: values, and names of variables that may be taken from the environment. */
import { ToolcribError } from "../../model/errors.ts";
import type { ServerParameter } from "../../model/skill.ts";
import { hasPlaceFor, type PlannedServer } from "./required-servers.ts";

/** `taken`: it is the variable of the parameter's name. */
export interface Given {
  readonly value: string;
  readonly taken: boolean;
}

const HOW = "--set takes NAME=value or server.NAME=value, or NAME alone for the variable of your environment.";

export class GivenValues {
  readonly #values = new Map<string, Given>();
  readonly #exact = new Set<string>();
  readonly #warnings = new Set<string>();
  readonly #env: NodeJS.ProcessEnv;

  constructor(set: readonly string[], servers: readonly PlannedServer[], env: NodeJS.ProcessEnv) {
    this.#env = env;
    const unknown: string[] = [];
    for (const text of set) {
      const at = text.indexOf("=");
      const key = (at === -1 ? text : text.slice(0, at)).trim();
      const meant = meantBy(key, servers);
      // What was typed is not repeated: it may be a secret.
      if (key === "" || (at === -1 && meant.length === 0)) throw new ToolcribError("invalid_arguments", HOW);
      if (meant.length === 0) unknown.push(key);
      for (const each of meant) this.#take(each, at === -1 ? undefined : text.slice(at + 1));
      const [first] = meant;
      if (first !== undefined && meant.every(({ server }) => server.configured !== undefined)) {
        const { id } = first.server;
        this.#warnings.add(`${key} is not used: the server ${id} is configured already, and stays as it is.`);
      } else if (
        first !== undefined &&
        !meant.some(({ server: { server }, parameter }) => hasPlaceFor(server, parameter.name))
      ) {
        this.#warnings.add(`${key} is not used: the skill declares it, and has no place for it.`);
      }
    }
    if (unknown.length > 0) throw unknownNames(unknown, servers);
  }

  of(id: string, name: string): Given | undefined {
    return this.#values.get(JSON.stringify([id, name]));
  }

  warnings(): string[] {
    return [...this.#warnings];
  }

  #take({ server, parameter: { name, sensitive }, isExact }: Meant, typed: string | undefined): void {
    const place = JSON.stringify([server.id, name]);
    const value = typed ?? this.#env[name];
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
      `The value of ${name} stood on the command line, where others on this machine and your shell's history see it. ` +
        `The question, or --set ${name} with the variable ${name}, keep it to yourself.`,
    );
  }
}

interface Meant {
  readonly server: PlannedServer;
  readonly parameter: ServerParameter;
  /** Whether the key names the server too. */
  readonly isExact: boolean;
}

function meantBy(key: string, servers: readonly PlannedServer[]): Meant[] {
  return servers.flatMap((server) =>
    server.server.parameters
      .filter(({ name }) => [name, `${server.id}.${name}`, `${server.server.name}.${name}`].includes(key))
      .map((parameter) => ({ server, parameter, isExact: key !== parameter.name })),
  );
}

function unknownNames(names: readonly string[], servers: readonly PlannedServer[]): ToolcribError {
  const known = servers.flatMap(({ id, server }) => server.parameters.map(({ name }) => `${id}.${name}`));
  return new ToolcribError("invalid_arguments", `No server of the skill has a parameter ${names.join(", ")}.`, {
    hint: known.length === 0 ? "There are none to set." : `There are ${known.join(", ")}.`,
  });
}
