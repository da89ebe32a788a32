/** How a server is started or reached: what a skill says about it, completed from its package or from the table. */
import { isJsonObject } from "../../model/json.ts";
import type { ServerParameter, ServerTemplate } from "../../model/skill.ts";
import { isPlainText, isCredentialName } from "../../secrets/credential-names.ts";
import { abbreviate } from "../read/read-warnings.ts";
import { launchCommand, launchedPackage, type PackageReference, registryOf } from "./package-reference.ts";
import { hasStrayOpening, placeholdersIn, templateStrings } from "./placeholders.ts";
import {
  type Field,
  type FieldPath,
  scalarText,
  type ServerFields,
  textOf,
  type Warn,
  warnOfType,
} from "./server-fields.ts";
import { readParameter } from "./server-parameters.ts";
import { type WellKnownServer, wellKnownByPackage } from "./well-known.ts";

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

export function readTemplate(fields: ServerFields, warn: Warn): TemplateRead {
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
export function completeTemplate(
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
export function isTemplateAllowed(template: ServerTemplate, path: FieldPath, warn: Warn): boolean {
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

export function beginsCommandLine(program: string): boolean {
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
