/**
 * `requires-mcp-servers`: which MCP servers a skill needs and how to get them. Authors write it in many ways; all that can be
 * understood is, and the rest is a warning. Nothing here throws.
 */
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import { ServerIdSchema } from "../../model/server-spec.ts";
import type { RequiredServer, ServerParameter, ServerTemplate } from "../../model/skill.ts";
import {
  launchedPackage,
  nameFromPackage,
  type PackageReference,
  parsePackage,
  launchCommand,
  registryOf,
} from "./package-reference.ts";
import { parametersUsed, placeholdersIn, hasStrayOpening, templateStrings } from "./placeholders.ts";
import { abbreviate } from "../read/read-warnings.ts";
import {
  type FieldPath,
  scalarText,
  ServerFields,
  type Warn,
  warnOfType,
  type Field,
  textOf,
} from "./server-fields.ts";
import { mergedParameters, readParameters, withImpliedParameters, readParameter } from "./server-parameters.ts";
import { wellKnownByName, wellKnownByPackage, type WellKnownServer } from "./well-known.ts";
import { isPlainText, isCredentialName } from "../../secrets/credential-names.ts";

/** One server as an object, whatever form it was written in. */
interface Item {
  readonly entry: JsonObject;
  readonly path: FieldPath;
}

/** Keys that say that an object is one server, and no map of servers by name. */
const SERVER_KEYS = [
  ...["name", "id", "server", "package", "npm", "pypi", "command", "cmd", "url", "serverUrl", "httpUrl"],
  ...["configTemplate", "template", "docker", "stdio"],
];

/** Keys that describe a server that another key names: `- files: "@scope/package"`, then `purpose: …`. */
const MORE_KEYS = new Set([
  ...["description", "purpose", "reason", "args", "arguments", "env", "environment", "cwd", "headers"],
  ...["parameters", "params", "transport", "type"],
]);

/** `warn` gets the path below the key `requires-mcp-servers`. */
export function parseRequiredServers(value: unknown, warn: Warn): RequiredServer[] {
  const servers = new Map<string, RequiredServer>();
  for (const { entry, path } of itemsOf(value, warn)) {
    const server = readServer(entry, path, warn);
    if (server === undefined) continue;
    if (servers.has(server.name))
      warn(
        "DUPLICATE_SERVER",
        `The server ${JSON.stringify(server.name)} is listed twice; the first one is used.`,
        path,
      );
    else servers.set(server.name, server);
  }
  return [...servers.values()];
}

function itemsOf(value: unknown, warn: Warn): Item[] {
  if (value === null || value === undefined) return [];
  if (typeof value === "string") {
    const texts = value.includes("://") ? [value] : value.split(",");
    return texts.filter((text) => text.trim() !== "").map((text) => ({ entry: fromText(text), path: [] }));
  }
  if (isJsonObject(value)) return fromMap(value, [], warn);
  if (!Array.isArray(value)) {
    warnOfType({ value, path: [] }, "a list of servers", warn);
    return [];
  }
  return value.flatMap((item: unknown, index): Item[] => {
    if (typeof item === "string" && item.trim() !== "") return [{ entry: fromText(item), path: [index] }];
    if (isJsonObject(item) && Object.keys(item).length > 0) return fromMap(item, [index], warn);
    warnOfType({ value: item, path: [index] }, "a server", warn);
    return [];
  });
}

/** One server with its keys, or servers by name. */
function fromMap(map: JsonObject, path: FieldPath, warn: Warn): Item[] {
  const named = Object.entries(map).filter(([key]) => !MORE_KEYS.has(key));
  if (named.length === 0 || new ServerFields(map, path).has(...SERVER_KEYS)) return [{ entry: map, path }];
  const more = named.length === 1 ? Object.fromEntries(Object.entries(map).filter(([key]) => MORE_KEYS.has(key))) : {};
  const entries = named.length === 1 ? named : Object.entries(map);
  return entries.flatMap(([name, value]): Item[] => {
    const at = Object.keys(more).length === 0 ? [...path, name] : path;
    if (value === null || value === true || value === "") return [{ entry: { ...more, name }, path: at }];
    if (typeof value === "string") return [{ entry: { ...fromText(value, "package"), ...more, name }, path: at }];
    if (isJsonObject(value)) return [{ entry: { ...more, ...value, name }, path: at }];
    warnOfType({ value, path: at }, "a package or a server", warn);
    return [];
  });
}

/** A text alone is an address, a command line, a package, a sentence that describes, or what `otherwise` says. */
function fromText(written: string, otherwise: "name" | "package" = "name"): JsonObject {
  const text = written.trim();
  if (/^https?:\/\//i.test(text)) return { url: text };
  const reference = parsePackage(text);
  if (reference !== undefined) {
    const isPlain = /^[^@:\s]+$/.test(text);
    if (!isPlain || otherwise === "package" || wellKnownByPackage(reference) !== undefined) return { package: text };
  }
  const words = text.split(/\s+/);
  if (words.length === 1) return { name: text };
  return beginsCommandLine(words[0] ?? "") ? { command: words } : { description: text };
}

/** undefined, with a warning, if it cannot even be named. */
function readServer(entry: JsonObject, path: FieldPath, warn: Warn): RequiredServer | undefined {
  const outer = new ServerFields(entry, path);
  const written = outer.takeText(warn, "name", "id", "server");
  const fields = outer.inside(warn, "configTemplate", "template", "config").inside(warn, "stdio", "http", "sse");
  const description = fields.takeText(warn, "description", "purpose", "reason");
  const reference = readPackage(fields, warn);
  const docker = readDocker(fields, warn);
  const declared = readParameters(fields.take("parameters", "params"), warn);
  const { draft, parameters: inPlace } = readTemplate(fields, warn);
  fields.warnOfRest(warn);

  // An image under a well-known name is that image, not the server of the table.
  const named = written === undefined || docker !== undefined ? undefined : wellKnownByName(written);
  const completed = completeTemplate(draft, reference, named);
  const known = completed?.known;
  const { command, args = [] } = completed?.template ?? {};
  const started = command === undefined ? undefined : launchedPackage(command, args)?.package;
  const name = validName(written ?? known?.name ?? guessedName(reference ?? started, completed?.template), path, warn);
  if (name === undefined) return undefined;

  const own = [...declared, ...inPlace];
  const { args: imageArgs, env: imageEnv } = draft;
  const image =
    completed !== undefined || docker === undefined ? docker : { ...docker, ...argsAndEnv(imageArgs, imageEnv) };
  const parameters = completed === undefined ? own : mergedParameters(own, known?.parameters ?? [], completed.template);
  const rest = completed === undefined ? undefined : withVariables(completed, parameters);
  const template = rest !== undefined && isTemplateAllowed(rest, path, warn) ? rest : undefined;
  if (template !== undefined) warnUnused(template, own, path, warn);
  if (completed === undefined) warnUnknown(name, docker !== undefined, path, warn);
  const found = reference ?? known?.package ?? started;
  // In a form that is read back as the same.
  const packageText = found?.registry === "pypi" ? `pypi:${found.spec}` : found?.spec;
  const about = description ?? known?.description;
  return {
    name,
    package: packageText,
    description: about,
    template,
    parameters: withImpliedParameters(parameters, template ?? argsAndEnv(image?.args, image?.env), path, warn),
    docker: image,
    ...(known === undefined || template === undefined ? {} : { wellKnown: true }),
  };
}

function argsAndEnv(
  args: readonly string[] | undefined,
  env: Readonly<Record<string, string>> | undefined,
): Pick<ServerTemplate, "args" | "env"> {
  return { ...(args === undefined ? {} : { args }), ...(env === undefined ? {} : { env }) };
}

function readPackage(fields: ServerFields, warn: Warn): PackageReference | undefined {
  const pypi = fields.take("pypi");
  const field = fields.take("package", "npm", "packageName") ?? pypi;
  if (field === undefined) return undefined;
  const text = scalarText(field.value);
  const reference = text === undefined ? undefined : parsePackage(field === pypi ? `pypi:${text}` : text);
  if (reference === undefined) warnOfType(field, "the name of a package", warn);
  return reference;
}

function readDocker(fields: ServerFields, warn: Warn): RequiredServer["docker"] {
  const field = fields.take("docker");
  if (field === undefined) return undefined;
  const text = scalarText(field.value);
  if (typeof field.value === "string" && text !== undefined && text !== "") return { image: text };
  if (text !== undefined || Array.isArray(field.value)) {
    warnOfType(field, "a map with image and port", warn);
    return undefined;
  }
  // Neither a scalar nor a list, so an object.
  const inner = new ServerFields(field.value as JsonObject, field.path);
  const image = inner.takeText(warn, "image");
  const portField = inner.take("port");
  const port = portField === undefined ? undefined : Number(scalarText(portField.value));
  inner.warnOfRest(warn);
  if (image === undefined) {
    warn("INVALID_DOCKER", "docker has no image and is ignored.", field.path);
    return undefined;
  }
  if (port === undefined) return { image };
  if (Number.isInteger(port) && port > 0 && port < 65_536) return { image, port };
  warn("INVALID_DOCKER", "The port of docker is not a number from 1 to 65535 and is ignored.", field.path);
  return { image };
}

function guessedName(
  reference: PackageReference | undefined,
  template: ServerTemplate | undefined,
): string | undefined {
  if (reference !== undefined) return nameFromPackage(reference);
  if (template?.url !== undefined && URL.canParse(template.url)) {
    const labels = new URL(template.url).hostname.split(".").filter((label) => !/^(?:www|mcp|api)$/.test(label));
    return labels.at(-2) ?? labels[0];
  }
  const program = template?.command?.split(/[\\/]/).at(-1);
  return program === undefined || placeholdersIn(program).length > 0 ? undefined : program;
}

/** A name that can be the id of a server. */
function validName(wanted: string | undefined, path: FieldPath, warn: Warn): string | undefined {
  const name = wanted
    ?.replaceAll(/[^A-Za-z0-9._@ -]+/g, "-")
    .replace(/^[^A-Za-z0-9]+/, "")
    .slice(0, 60)
    .replace(/[ -]+$/, "");
  if (name === undefined || name === "") {
    warn("INVALID_SERVER", "An entry does not name a server; it is ignored.", path);
    return undefined;
  }
  const valid = ServerIdSchema.safeParse(name).success ? name : `${name}-server`;
  if (valid !== wanted)
    warn(
      "INVALID_SERVER_NAME",
      `${JSON.stringify(abbreviate(wanted ?? ""))} cannot be the name of a server; ${valid} is used.`,
      path,
    );
  return valid;
}

/**
 * A parameter of a package that no text uses can only be meant for its environment. In a template that the skill wrote
 * itself, it is just not used.
 */
function withVariables(
  { template, isExplicit }: { template: ServerTemplate; isExplicit: boolean },
  parameters: readonly ServerParameter[],
): ServerTemplate {
  if (isExplicit || template.command === undefined) return template;
  const used = parametersUsed(template);
  const unused = parameters.filter(({ name }) => !used.has(name) && /^[A-Z][A-Z0-9_]*$/.test(name));
  if (unused.length === 0) return template;
  return {
    ...template,
    env: { ...template.env, ...Object.fromEntries(unused.map(({ name }) => [name, `\${${name}}`])) },
  };
}

function warnUnused(template: ServerTemplate, declared: readonly ServerParameter[], path: FieldPath, warn: Warn): void {
  const used = parametersUsed(template);
  for (const { name } of declared)
    if (!used.has(name)) warn("UNUSED_PARAMETER", `The parameter ${abbreviate(name)} is declared but not used.`, path);
}

function warnUnknown(name: string, hasImage: boolean, path: FieldPath, warn: Warn): void {
  const what = JSON.stringify(name);
  const message = hasImage
    ? `The server ${what} is available only as a container image: podman or docker is needed to run it.`
    : `The server ${what} is unknown, and the skill does not say how to start it.`;
  warn(hasImage ? "CONTAINER_ONLY" : "UNKNOWN_SERVER", message, path);
}

// How a server is started or reached: what a skill says about it, completed from its package or from the table.

/** The part of a template that the skill states itself. */
interface TemplateRead {
  readonly draft: ServerTemplate;
  /** Declared in the place of a value. */
  readonly parameters: readonly ServerParameter[];
}

const TRANSPORTS: Readonly<Record<string, "stdio" | "http" | "sse">> = {
  stdio: "stdio",
  local: "stdio",
  http: "http",
  "streamable-http": "http",
  streamablehttp: "http",
  sse: "sse",
};

function readTemplate(fields: ServerFields, warn: Warn): TemplateRead {
  const transport = transportOf(fields.take("transport", "type", "transportType"), warn);
  const [command, ...words] = commandWords(fields.take("command", "cmd"), warn);
  const argsField = fields.take("args", "arguments");
  const args = argsField === undefined ? words : [...words, ...readWords(argsField, warn)];
  const env = readNamedValues(fields.take("env", "environment"), warn);
  const headers = readNamedValues(fields.take("headers", "httpHeaders"), warn);
  const cwd = fields.takeText(warn, "cwd", "workingDir", "workingDirectory");
  const url = fields.takeText(warn, "url", "serverUrl", "httpUrl");
  const isRemote = url !== undefined && (command === undefined || transport === "http" || transport === "sse");
  if (url !== undefined && command !== undefined) {
    const kept = isRemote ? "address" : "command";
    warn("SERVER_AMBIGUOUS", `The server has both a command and an address; the ${kept} is used.`, fields.path);
  }
  const parameters = [...env.parameters, ...headers.parameters];
  const draft: ServerTemplate = isRemote
    ? {
        url,
        ...(headers.values === undefined ? {} : { headers: headers.values }),
        ...(transport === "http" || transport === "sse" ? { transport } : {}),
      }
    : {
        ...(command === undefined ? {} : { command }),
        ...(args.length === 0 ? {} : { args }),
        ...(env.values === undefined ? {} : { env: env.values }),
        ...(cwd === undefined ? {} : { cwd }),
      };
  return { draft, parameters };
}

interface Completed {
  readonly template: ServerTemplate;
  /** Where the rest came from. */
  readonly known?: WellKnownServer;
  /** The skill says itself how the server is started. */
  readonly isExplicit: boolean;
}

/** undefined if nothing says how the server is started. `named` is the well-known server of the same name. */
function completeTemplate(
  draft: ServerTemplate,
  reference: PackageReference | undefined,
  named: WellKnownServer | undefined,
): Completed | undefined {
  if (draft.url !== undefined) return { template: draft, isExplicit: true };
  if (draft.command !== undefined) {
    const args = draft.args ?? [];
    const registry = registryOf(draft.command);
    const isWhole =
      reference === undefined || registry === undefined || launchedPackage(draft.command, args) !== undefined;
    if (isWhole) return { template: draft, isExplicit: true };
    // `command: npx` beside `package`, with nothing else or arguments for the server only.
    return { template: { ...draft, ...launchCommand({ ...reference, registry }, args) }, isExplicit: true };
  }
  const known = reference === undefined ? named : wellKnownByPackage(reference);
  const launched = reference ?? known?.package;
  const base: ServerTemplate | undefined =
    known?.template ?? (launched === undefined ? undefined : launchCommand(launched, []));
  if (base === undefined) return undefined;
  const env = { ...base.env, ...draft.env };
  return {
    template: {
      ...base,
      ...(draft.args === undefined || launched === undefined ? {} : launchCommand(launched, draft.args)),
      ...(Object.keys(env).length === 0 ? {} : { env }),
      ...(draft.cwd === undefined ? {} : { cwd: draft.cwd }),
    },
    ...(known === undefined ? {} : { known }),
    isExplicit: false,
  };
}

/** A skill's author has no say in which secrets of the machine a server gets. */
function isTemplateAllowed(template: ServerTemplate, path: FieldPath, warn: Warn): boolean {
  const texts = templateStrings(template).map(({ text }) => text);
  const names = Object.keys({ ...template.env, ...template.headers });
  if ([...texts, ...names].some((text) => text.includes("\0"))) {
    warn("INVALID_TEMPLATE", "A string of the template contains a NUL character; the template is ignored.", path);
    return false;
  }
  if (texts.some((text) => /secret:\/\//i.test(text))) {
    const message = "The template refers to a secret of this machine and is ignored; use a ${PARAMETER} instead.";
    warn("REFERENCE_IN_TEMPLATE", message, path);
    return false;
  }
  if (texts.some(hasStrayOpening))
    warn(
      "INVALID_PLACEHOLDER",
      "A string of the template has a ${ that does not begin a placeholder; it stays as written.",
      path,
    );
  return true;
}

function transportOf(field: Field | undefined, warn: Warn): "stdio" | "http" | "sse" | undefined {
  if (field === undefined) return undefined;
  const word = (scalarText(field.value) ?? "").toLowerCase().replaceAll("_", "-");
  const known = Object.hasOwn(TRANSPORTS, word) ? TRANSPORTS[word] : undefined;
  if (known === undefined) warnOfType(field, "stdio, http or sse", warn);
  return known;
}

// Commands with arguments, in the ways people write them.

/** Programs that a whole command line may begin with, besides those that fetch packages. */
const PROGRAMS = new Set(["node", "deno", "python", "python3", "docker", "podman", "uv", "java", "go", "cmd"]);

function beginsCommandLine(program: string): boolean {
  return registryOf(program) !== undefined || PROGRAMS.has(program.toLowerCase());
}

/** A program, a list that begins with one, or a whole command line of a program that is known here. */
function commandWords(field: Field | undefined, warn: Warn): string[] {
  if (field === undefined) return [];
  if (Array.isArray(field.value)) return readWords(field, warn);
  const text = textOf(field, warn);
  if (text === undefined) return [];
  const words = text.split(/\s+/);
  const [first = ""] = words;
  // A path may have spaces in it.
  if (words.length === 1 || !beginsCommandLine(first)) return [text];
  const message = `The command includes its arguments; ${JSON.stringify(abbreviate(first))} is read as the program.`;
  warn("COMMAND_LINE", message, field.path);
  return words;
}

function readWords(field: Field, warn: Warn): string[] {
  if (typeof field.value === "string") {
    const words = field.value.split(/\s+/).filter((word) => word !== "");
    if (words.length > 1)
      warn("INVALID_TYPE", "Found a string where a list is expected; it is split at spaces.", field.path);
    return words;
  }
  if (!Array.isArray(field.value)) {
    warnOfType(field, "a list of strings", warn);
    return [];
  }
  return field.value.flatMap((item: unknown, index) => {
    // Space around an argument may be meant.
    const text = typeof item === "string" ? item : scalarText(item);
    if (text === undefined) warnOfType({ value: item, path: [...field.path, index] }, "text", warn);
    return text ?? [];
  });
}

// `env` and `headers`: strings by name, where a missing one is a parameter.

interface NamedValues {
  readonly values?: Readonly<Record<string, string>>;
  /** Declared by an object in the place of a text: `API_KEY: {description: …, sensitive: true}`. */
  readonly parameters: readonly ServerParameter[];
}

type NamedEntry = readonly [key: string, value: unknown, path: FieldPath];

/** A map, or a list of `NAME=value`, of `{name, value}` or of names alone. */
function readNamedValues(field: Field | undefined, warn: Warn): NamedValues {
  const parameters: ServerParameter[] = [];
  const values = namedEntries(field, warn).flatMap(([key, value, path]) => {
    const name = parameterName(key);
    if (value === null || value === undefined || value === "") return [[key, `\${${name}}`] as const];
    if (isJsonObject(value)) {
      const declared = readParameter(name, value, path, warn);
      if (declared !== undefined) parameters.push(declared);
      return [[key, `\${${name}}`] as const];
    }
    const text = typeof value === "string" ? value : scalarText(value);
    if (text !== undefined) return [[key, withoutCredential(key, text, path, warn)] as const];
    warnOfType({ value, path }, "text", warn);
    return [];
  });
  return { parameters, ...(values.length === 0 ? {} : { values: Object.fromEntries(values) }) };
}

function namedEntries(field: Field | undefined, warn: Warn): NamedEntry[] {
  if (field === undefined) return [];
  const { value, path } = field;
  if (isJsonObject(value)) return Object.entries(value).map(([key, one]): NamedEntry => [key, one, [...path, key]]);
  if (!Array.isArray(value)) {
    warnOfType(field, "a map of strings", warn);
    return [];
  }
  return value.flatMap((item: unknown, index): NamedEntry[] => {
    const at = [...path, index];
    const [, key, text] = (typeof item === "string" && /^\s*([\w-]+)(?:\s*[=:]\s*(.*))?$/s.exec(item)) || [];
    if (key !== undefined) return [[key, text, at]];
    if (isJsonObject(item) && typeof item["name"] === "string") return [[item["name"], item["value"] ?? item, at]];
    warnOfType({ value: item, path: at }, "NAME=value", warn);
    return [];
  });
}

/** A credential in a published file is an example, or should never have been published. */
function withoutCredential(key: string, text: string, path: FieldPath, warn: Warn): string {
  const [, scheme = "", token = text] = /^(Bearer |Basic |Token )(.*)$/is.exec(text) ?? [];
  if (!isCredentialName(key) || !isPlainText(token) || placeholdersIn(token).length > 0) return text;
  warn("PLAIN_CREDENTIAL", `A value for ${abbreviate(key)} is in plain text; it is replaced by a parameter.`, path);
  return `${scheme}\${${parameterName(key)}}`;
}

/** `X-Api-Key` as a name for a placeholder. */
function parameterName(key: string): string {
  return key.replaceAll(/[^A-Za-z0-9_]/g, "_").replace(/^(?=\d|$)/, "_");
}
