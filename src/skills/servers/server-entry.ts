/** Turns a server that a skill needs, with values for its parameters, into an entry of the config. */
import { join } from "node:path";
import { ToolcribError } from "../../model/errors.ts";
import { type ServerEntryInput, ServerEntrySchema } from "../../model/server-spec.ts";
import type { ContainerTemplate, RequiredServer, ServerParameter, ServerTemplate } from "../../model/skill.ts";
import {
  findReferences,
  hasReference,
  type Part,
  parseReferences,
  type Reference,
  type SecretReference,
} from "../../secrets/secret-references.ts";
import { launchedPackage } from "./package-reference.ts";
import { isVariable, parsePlaceholders, placeholdersIn, type ServerVariables } from "./placeholders.ts";

/** The default with its variables filled in. */
export function resolveDefault(parameter: ServerParameter, variables: ServerVariables): string | undefined {
  if (parameter.default === undefined || parameter.sensitive) return undefined;
  return parsePlaceholders(parameter.default)
    .map((part) => (typeof part === "string" ? part : isVariable(part.name) ? variables[part.name] : ""))
    .join("");
}

/** A piece of an entry's string: text that must reach the server as it is, or a reference to a secret. */
type Piece = { readonly plain: string } | { readonly secret: string };

/** A parameter with its value, or none where it is optional. */
type Pieces = ReadonlyMap<string, Piece | undefined>;

/**
 * The entry for `mcpServers`. `values` are by parameter name; those of sensitive ones are `secret://…` references. Throws
 * `invalid_arguments` for missing or invalid values, all missing ones at once. Messages never contain a value.
 */
export function resolveServerEntry(
  server: RequiredServer,
  values: Readonly<Record<string, string>>,
  variables: ServerVariables,
): ServerEntryInput {
  const { template } = server;
  if (template === undefined) {
    throw new ToolcribError(
      "invalid_config",
      `The skill does not say how to start the server ${JSON.stringify(server.name)}.`,
      {
        hint: `Add it to the config yourself with toolcrib add ${server.name} -- <command …>`,
      },
    );
  }
  const pieces = piecesOf(server, values, variables);
  for (const [name, path] of Object.entries(variables)) pieces.set(name, { plain: path });
  const fill = (text: string): string | undefined => filled(text, pieces, server.name);
  const entry = {
    ...stdioPart(template, fill, variables.SKILL_DIR),
    ...remotePart(template, fill),
    ...containerPart(template, fill),
  };
  const parsed = ServerEntrySchema.safeParse(entry);
  const ways = [entry.command, entry.url, entry.sandbox].filter((way) => way !== undefined);
  const isWhole = ways.length === 1 && isAddress(entry.url);
  if (!parsed.success || !isWhole) {
    throw new ToolcribError(
      "invalid_config",
      `The template of the server ${JSON.stringify(server.name)} does not result in a valid entry.`,
      {
        hint: "With its parameters filled in, it must have a command or a URL that begins with https://.",
      },
    );
  }
  return entry;
}

function piecesOf(
  { name: id, parameters }: RequiredServer,
  values: Readonly<Record<string, string>>,
  variables: ServerVariables,
): Map<string, Piece | undefined> {
  const pieces = new Map<string, Piece | undefined>();
  const missing: string[] = [];
  for (const parameter of parameters) {
    const { name, required, sensitive } = parameter;
    const given = Object.hasOwn(values, name) ? values[name] : undefined;
    const value = given === undefined || (given === "" && required) ? resolveDefault(parameter, variables) : given;
    if (value === undefined && required) missing.push(name);
    else if (value === undefined || (value === "" && sensitive)) pieces.set(name, undefined);
    else pieces.set(name, sensitive ? secretPiece(name, value, id) : plainPiece(name, value, id));
  }
  if (missing.length === 0) return pieces;
  const list = missing.join(", ");
  throw new ToolcribError("invalid_arguments", `The server ${JSON.stringify(id)} needs a value for ${list}.`, {
    hint: missing.map((name) => `--set ${name}=…`).join(" "),
    details: { server: id, missing },
  });
}

function secretPiece(name: string, value: string, id: string): Piece {
  const [reference, ...more] = findReferences(value);
  if (reference?.kind === "secret" && reference.text === value && more.length === 0) return { secret: value };
  throw new ToolcribError(
    "invalid_arguments",
    `The parameter ${name} of the server ${JSON.stringify(id)} is sensitive: its value must be a reference to a secret.`,
    { hint: "Store the value with `toolcrib secrets set`, and give secret://… here." },
  );
}

/** `secret://` cannot be escaped; `${` can. */
function plainPiece(name: string, value: string, id: string): Piece {
  if (!/secret:\/\//i.test(value)) return { plain: value };
  throw new ToolcribError(
    "invalid_arguments",
    `The value for ${name} of the server ${JSON.stringify(id)} contains "secret://", which would be read as a reference to a secret.`,
    { hint: `${name} is not declared sensitive, so it takes plain text only.` },
  );
}

/** The text as the config wants it; undefined if it needs a parameter that has no value. */
function filled(text: string, pieces: Pieces, id: string): string | undefined {
  const joined: Piece[] = [];
  for (const part of parsePlaceholders(text)) {
    const piece: Piece | undefined = typeof part === "string" ? { plain: part } : pieces.get(part.name);
    if (piece === undefined) return undefined;
    const last = joined.at(-1);
    // Joined before it is escaped: `$` and `{` may come from two sides.
    if (last !== undefined && "plain" in last && "plain" in piece)
      joined.splice(-1, 1, { plain: last.plain + piece.plain });
    else joined.push(piece);
  }
  const [first] = joined;
  const isAlone = joined.length === 1 && first !== undefined && "secret" in first;
  const result = isAlone ? first.secret : joined.map(escapePiece).join("");
  if (isReadAs(result, joined)) return result;
  throw new ToolcribError(
    "invalid_arguments",
    `A value for the server ${JSON.stringify(id)} would be read as a reference.`,
    {
      hint: "A value and the text around it must not form `${` or `secret://`.",
    },
  );
}

function escapePiece(piece: Piece): string {
  if ("plain" in piece) return piece.plain.replaceAll("${", () => "$${");
  return piece.secret.startsWith("${") ? piece.secret : `\${${piece.secret}}`;
}

/** Whether the config's own reader returns the same strings and secrets. */
function isReadAs(text: string, wanted: readonly Piece[]): boolean {
  let parts: readonly Part[];
  try {
    parts = parseReferences(text);
  } catch {
    return false;
  }
  const texts = wanted.filter((piece) => "secret" in piece || piece.plain !== "" || wanted.length === 1);
  return (
    parts.length === texts.length &&
    texts.every((piece, index) => {
      const part = parts[index];
      if ("plain" in piece) return part === piece.plain;
      const [reference] = findReferences(piece.secret);
      return typeof part === "object" && part.kind === "secret" && sameSecret(part, reference);
    })
  );
}

function sameSecret(a: SecretReference, b: Reference | undefined): boolean {
  return b?.kind === "secret" && a.provider === b.provider && a.path === b.path && a.field === b.field;
}

type Fill = (text: string) => string | undefined;

function stdioPart(template: ServerTemplate, fill: Fill, skillDir: string): ServerEntryInput {
  const written = template.command === undefined ? undefined : fill(template.command);
  const command = written !== undefined && isOwnProgram(written) ? join(skillDir, written) : written;
  const cwd = template.cwd === undefined ? undefined : fill(template.cwd);
  const args = argumentsOf(template.args ?? [], fill);
  const env = recordOf(template.env, fill);
  return {
    ...(command === undefined ? {} : { command }),
    ...(args.length === 0 ? {} : { args }),
    ...(env === undefined ? {} : { env }),
    ...(cwd === undefined ? {} : { cwd }),
  };
}

/** `./bin/server` is a program in the skill's own folder. */
export function isOwnProgram(command: string): boolean {
  return /^\.[\\/]/.test(command) && !command.split(/[\\/]/).includes("..");
}

/** A port is published by a container with a network only. */
function containerPart({ container }: ServerTemplate, fill: Fill): Pick<ServerEntryInput, "sandbox"> {
  if (container === undefined) return {};
  const { write = [], ...rest } = container;
  const folders = write.map(fill).filter((folder) => folder !== undefined);
  const mounts = folders.length === 0 ? {} : { write: folders };
  return { sandbox: { kind: "container", network: rest.port === undefined ? "none" : "host", ...rest, ...mounts } };
}

function remotePart(template: ServerTemplate, fill: Fill): ServerEntryInput {
  const url = template.url === undefined ? undefined : fill(template.url);
  if (url === undefined) return {};
  const headers = recordOf(template.headers, fill);
  const { transport } = template;
  return {
    url,
    ...(headers === undefined ? {} : { headers }),
    ...(transport === "http" || transport === "sse" ? { transport } : {}),
  };
}

/** An argument whose parameter has no value is dropped, together with the option before it. */
function argumentsOf(args: readonly string[], fill: Fill): string[] {
  const result: string[] = [];
  for (const arg of args) {
    const text = fill(arg);
    const isWholeValue = parsePlaceholders(arg).length === 1;
    if (text !== undefined) result.push(text);
    else if (isWholeValue && /^--[^=]+$/.test(result.at(-1) ?? "")) result.pop();
  }
  return result;
}

function recordOf(
  record: Readonly<Record<string, string>> | undefined,
  fill: Fill,
): Record<string, string> | undefined {
  const entries = Object.entries(record ?? {}).flatMap(([key, text]) => {
    const value = fill(text);
    return value === undefined ? [] : [[key, value] as const];
  });
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}

/** A URL with a reference is checked at connect time, when its value is known. */
function isAddress(url: string | undefined): boolean {
  return url === undefined || hasReference(url) || (/^https?:\/\//i.test(url) && URL.canParse(url));
}

/**
 * The same server in its container; the server itself if it has no image.
 * @param bounds The operator's limits for servers of skills.
 */
export function withContainer(
  server: RequiredServer,
  bounds: Omit<ContainerTemplate, "image" | "port" | "write"> = {},
): RequiredServer {
  const { docker, template, parameters } = server;
  if (docker === undefined) return server;
  const { args: imageArgs, env: imageEnv, ...image } = docker;
  const args = imageArgs ?? serverArguments(template);
  const env = imageEnv ?? template?.env ?? variablesFor(parameters);
  // Paths of the machine mean nothing in a container, unless the folder is there too.
  const usesWorkspace = args.some((arg) =>
    placeholdersIn(withDefaults(arg, parameters)).some(({ name }) => name === "WORKSPACE"),
  );
  return {
    ...server,
    template: {
      ...(args.length === 0 ? {} : { args }),
      ...(Object.keys(env).length === 0 ? {} : { env }),
      container: { ...image, ...bounds, ...(usesWorkspace ? { write: ["${WORKSPACE}"] } : {}) },
    },
  };
}

/** With the default of each parameter, which is its value unless another is given. */
function withDefaults(text: string, parameters: readonly ServerParameter[]): string {
  const names = placeholdersIn(text).map(({ name }) => name);
  const defaults = parameters.filter(({ name }) => names.includes(name)).map((parameter) => parameter.default ?? "");
  return [text, ...defaults].join(" ");
}

/** Arguments after the package are for the server itself, which the image starts too. */
function serverArguments(template: ServerTemplate | undefined): readonly string[] {
  if (template?.command === undefined) return [];
  return launchedPackage(template.command, template.args ?? [])?.rest ?? [];
}

/** Of a server that has no template: its parameters can only be meant for its environment. */
function variablesFor(parameters: readonly ServerParameter[]): Record<string, string> {
  const names = parameters.map(({ name }) => name).filter((name) => /^[A-Z][A-Z0-9_]*$/.test(name));
  return Object.fromEntries(names.map((name) => [name, `\${${name}}`]));
}
