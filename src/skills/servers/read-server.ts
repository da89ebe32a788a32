/** One object under `requires-mcp-servers`. */
import type { JsonObject } from "../../model/json.ts";
import { ServerIdSchema } from "../../model/server-spec.ts";
import type { RequiredServer, ServerParameter, ServerTemplate } from "../../model/skill.ts";
import { type FieldPath, Fields, scalarText, shown, type Warn, warnOfType } from "./fields.ts";
import { launchedPackage, nameFromPackage, type PackageReference, parsePackage } from "./package-reference.ts";
import { mergedParameters, readParameters, withImplied } from "./parameters.ts";
import { placeholdersIn } from "./placeholders.ts";
import { completeTemplate, isAcceptable, readTemplate } from "./template.ts";
import { parametersUsed } from "./template-strings.ts";
import { wellKnownByName } from "./well-known.ts";

/** undefined, with a warning, if it cannot even be named. */
export function readServer(entry: JsonObject, path: FieldPath, warn: Warn): RequiredServer | undefined {
  const outer = new Fields(entry, path);
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
  const started = completed === undefined ? undefined : startedBy(completed.template);
  const name = validName(written ?? known?.name ?? guessedName(reference ?? started, completed?.template), path, warn);
  if (name === undefined) return undefined;

  const own = [...declared, ...inPlace];
  const parameters = completed === undefined ? own : mergedParameters(own, known?.parameters ?? [], completed.template);
  const rest = completed === undefined ? undefined : withVariables(completed, parameters);
  const template = rest !== undefined && isAcceptable(rest, path, warn) ? rest : undefined;
  if (template !== undefined) tellUnused(template, own, path, warn);
  if (completed === undefined) tellUnknown(name, docker !== undefined, path, warn);
  const packageText = packageOf(reference ?? known?.package ?? started);
  const about = description ?? known?.description;
  return {
    name,
    package: packageText,
    description: about,
    template,
    parameters: template === undefined ? parameters : withImplied(parameters, template, path, warn),
    docker,
    ...(known === undefined || template === undefined ? {} : { wellKnown: true }),
  };
}

function readPackage(fields: Fields, warn: Warn): PackageReference | undefined {
  const pypi = fields.take("pypi");
  const field = fields.take("package", "npm", "packageName") ?? pypi;
  if (field === undefined) return undefined;
  const text = scalarText(field.value);
  const reference = text === undefined ? undefined : parsePackage(field === pypi ? `pypi:${text}` : text);
  if (reference === undefined) warnOfType(field, "the name of a package", warn);
  return reference;
}

function readDocker(fields: Fields, warn: Warn): RequiredServer["docker"] {
  const field = fields.take("docker");
  if (field === undefined) return undefined;
  const text = scalarText(field.value);
  if (typeof field.value === "string" && text !== undefined && text !== "") return { image: text };
  if (text !== undefined || Array.isArray(field.value)) {
    warnOfType(field, "a map with image and port", warn);
    return undefined;
  }
  // What is neither a scalar nor a list is an object.
  const inner = new Fields(field.value as JsonObject, field.path);
  const image = inner.takeText(warn, "image");
  const portField = inner.take("port");
  const port = portField === undefined ? undefined : Number(scalarText(portField.value));
  inner.warnOfRest(warn);
  if (image === undefined) {
    warn("INVALID_DOCKER", "docker names no image and is left out.", field.path);
    return undefined;
  }
  if (port === undefined) return { image };
  if (Number.isInteger(port) && port > 0 && port < 65_536) return { image, port };
  warn("INVALID_DOCKER", "The port of docker is no number from 1 to 65535 and is left out.", field.path);
  return { image };
}

function startedBy({ command, args }: ServerTemplate): PackageReference | undefined {
  return command === undefined ? undefined : launchedPackage(command, args ?? [])?.package;
}

/** In a form that is read back as the same. */
function packageOf(reference: PackageReference | undefined): string | undefined {
  return reference?.registry === "pypi" ? `pypi:${reference.spec}` : reference?.spec;
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
    warn("INVALID_SERVER", "Found something that names no server; it is left out.", path);
    return undefined;
  }
  const valid = ServerIdSchema.safeParse(name).success ? name : `${name}-server`;
  if (valid !== wanted)
    warn(
      "INVALID_SERVER_NAME",
      `${JSON.stringify(shown(wanted ?? ""))} cannot be a server's name; it is called ${valid}.`,
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

function tellUnused(template: ServerTemplate, declared: readonly ServerParameter[], path: FieldPath, warn: Warn): void {
  const used = parametersUsed(template);
  for (const { name } of declared)
    if (!used.has(name)) warn("UNUSED_PARAMETER", `The parameter ${shown(name)} is declared and not used.`, path);
}

function tellUnknown(name: string, hasImage: boolean, path: FieldPath, warn: Warn): void {
  const what = JSON.stringify(name);
  const message = hasImage
    ? `The server ${what} comes as a container image only: podman or docker is needed to run it.`
    : `The server ${what} is not well known, and the skill does not say how it is started.`;
  warn(hasImage ? "CONTAINER_ONLY" : "UNKNOWN_SERVER", message, path);
}
