/** Which configured server does the job of one that a skill needs, and which entries are one server. */
import { canonicalJson } from "../../model/json.ts";
import { sandboxImageOf, type ServerEntryInput, type ServerSpec } from "../../model/server-spec.ts";
import type { RequiredServer, ServerTemplate } from "../../model/skill.ts";
import { launchedPackage, type PackageReference, parsePackage, isSamePackage } from "./package-reference.ts";
import { isVariable, parsePlaceholders } from "./placeholders.ts";

/**
 * The same id, else the same package in any version, else the same command or address, else the same image. A package or
 * program that is started with other arguments is another server.
 */
export function findMatchingServer(server: RequiredServer, configured: readonly ServerSpec[]): ServerSpec | undefined {
  const isPackage = (spec: ServerSpec): boolean => startsPackage(spec, packageOf(server));
  const isOther = (spec: ServerSpec): boolean =>
    (isPackage(spec) && contradicts(spec, server.template)) || hasOtherArguments(spec, server.template);
  return (
    configured.find((spec) => spec.id === server.name && !isOther(spec)) ??
    configured.find((spec) => isPackage(spec) && !contradicts(spec, server.template)) ??
    configured.find((spec) => server.template !== undefined && matchesTemplate(spec, server.template)) ??
    configured.find((spec) => server.docker !== undefined && sandboxImageOf(spec.sandbox) === server.docker.image)
  );
}

/** Whether both start the same program in the same way, or reach the same address. Compares entries as they are written. */
export function isSameServer(a: ServerEntryInput, b: ServerEntryInput): boolean {
  return identity(a) === identity(b);
}

function identity(entry: ServerEntryInput): string {
  const { command, args = [], env = {}, cwd, url, headers = {}, auth, sandbox } = entry;
  if (url !== undefined) return canonicalJson({ url: withoutSlash(url), headers, auth });
  const image = command === undefined && typeof sandbox === "object" ? sandbox.image : undefined;
  return canonicalJson({ command, image, args, env, cwd });
}

function packageOf({ package: text, template }: RequiredServer): PackageReference | undefined {
  const started = template?.command === undefined ? undefined : launchedPackage(template.command, template.args ?? []);
  return started?.package ?? (text === undefined ? undefined : parsePackage(text));
}

function startsPackage(spec: ServerSpec, wanted: PackageReference | undefined): boolean {
  if (wanted === undefined || spec.command === undefined) return false;
  const started = launchedPackage(spec.command, spec.args ?? []);
  return started !== undefined && isSamePackage(started.package, wanted);
}

/** Whether a template says something else of arguments or variables than the entry does. Parameters match anything. */
function contradicts(spec: ServerSpec, template: ServerTemplate | undefined): boolean {
  if (template?.command === undefined || spec.command === undefined) return false;
  const wanted = launchedPackage(template.command, template.args ?? [])?.rest ?? [];
  const given = new Set(launchedPackage(spec.command, spec.args ?? [])?.rest);
  const isElsewhere = wanted.some((arg) => !arg.startsWith("-") && isPlain(arg) && !given.has(arg));
  const variables = Object.entries(template.env ?? {}).filter(([, value]) => isPlain(value));
  return isElsewhere || variables.some(([name, value]) => (spec.env?.[name] ?? value) !== value);
}

/** Whether both start the same program, such as a script with Node, and the template gives it an argument that the entry does not. */
function hasOtherArguments(spec: ServerSpec, template: ServerTemplate | undefined): boolean {
  const [program, ...others] = (template?.args ?? []).filter((arg) => !arg.startsWith("-") && isPlain(arg));
  if (spec.command !== template?.command || spec.args === undefined || program === undefined) return false;
  if (launchedPackage(spec.command ?? "", spec.args) !== undefined || !spec.args.includes(program)) return false;
  return others.some((arg) => !spec.args?.includes(arg));
}

/** The value that an entry has in the place of a parameter; undefined if it cannot be told. */
export function parameterValue(spec: ServerSpec, template: ServerTemplate, parameter: string): string | undefined {
  const isWhole = (text: string): boolean => {
    const [part, ...more] = parsePlaceholders(text);
    return more.length === 0 && typeof part === "object" && part.name === parameter;
  };
  const rest = (command: string | undefined, args: readonly string[] = []): readonly string[] =>
    (command === undefined ? undefined : launchedPackage(command, args)?.rest) ?? args;
  const [wanted, given] = [rest(template.command, template.args), rest(spec.command, spec.args)];
  const at = wanted.length === given.length ? wanted.findIndex(isWhole) : -1;
  const [name] = Object.entries(template.env ?? {}).find(([, text]) => isWhole(text)) ?? [];
  return at === -1 ? (name === undefined ? undefined : spec.env?.[name]) : given[at];
}

/** Parameters match anything; the rest must be equal and must not be trivial. */
function matchesTemplate(spec: ServerSpec, template: ServerTemplate): boolean {
  if (template.url !== undefined)
    return spec.url !== undefined && matchesAddress(withoutSlash(spec.url), withoutSlash(template.url));
  if (template.command === undefined || spec.command !== template.command) return false;
  const [wanted, given] = [template.args ?? [], spec.args ?? []];
  if (wanted.length !== given.length || !wanted.every((text, index) => matchesText(given[index] ?? "", text)))
    return false;
  // `node ${SCRIPT}` would fit every program of Node.
  return wanted.length === 0 || wanted.some((text) => isPlain(text) && !text.startsWith("-"));
}

/** The host must be written out: `https://${HOST}/mcp` would fit too much. */
function matchesAddress(given: string, wanted: string): boolean {
  const origin = /^https?:\/\/[^/?#]+/i.exec(wanted)?.[0];
  return origin !== undefined && isPlain(origin) && matchesText(given, wanted);
}

function isPlain(text: string): boolean {
  const parts = parsePlaceholders(text);
  return parts.length === 1 && typeof parts[0] === "string";
}

function matchesText(given: string, wanted: string): boolean {
  const parts = parsePlaceholders(wanted);
  // The folder of another skill contains another program.
  if (parts.some((part) => typeof part === "object" && isVariable(part.name))) return false;
  const texts = parts.map((part) => (typeof part === "string" ? part : undefined));
  if (texts.length === 1 && texts[0] !== undefined) return given === texts[0];
  return matchesParts(given, texts);
}

/** Undefined parts match any text. Left to right, without a regular expression built from untrusted text. */
function matchesParts(given: string, texts: readonly (string | undefined)[]): boolean {
  let position = 0;
  for (const [index, text] of texts.entries()) {
    if (text === undefined) continue;
    if (index === texts.length - 1) return given.length - text.length >= position && given.endsWith(text);
    const found = index === 0 ? (given.startsWith(text) ? 0 : -1) : given.indexOf(text, position);
    if (found === -1) return false;
    position = found + text.length;
  }
  return true;
}

function withoutSlash(url: string): string {
  return url.replace(/(?<!\/)\/+$/, "");
}
