/**
 * The placeholders of a server template: `${NAME}`, `${NAME:-default}`, and `${env:NAME}` or `${input:NAME}` as editors
 * write them. `{baseDir}` is OpenClaw's word for the skill's folder. `$${` is a literal `${`.
 */
import type { ServerTemplate } from "../../model/skill.ts";
import { isCredentialName } from "../../secrets/credential-names.ts";

/** Variables that Toolcrib sets; all other names are parameters. */
export const VARIABLES = ["CWD", "WORKSPACE", "HOME", "SKILL_DIR"] as const;
type VariableName = (typeof VARIABLES)[number];
export type ServerVariables = Readonly<Record<VariableName, string>>;

interface Placeholder {
  readonly name: string;
  readonly fallback?: string;
}

/** Literal text, or a placeholder. */
type TemplatePart = string | Placeholder;

const PLACEHOLDER = /\$\$\{|\$\{(?:env:|input:)?([A-Za-z_][A-Za-z0-9_.-]{0,127})(?::-([^}]*))?\}|\{baseDir\}/g;

/** Anything that only resembles a placeholder stays text. */
export function parsePlaceholders(text: string): TemplatePart[] {
  const parts: TemplatePart[] = [];
  let literal = "";
  let position = 0;
  for (const match of text.matchAll(PLACEHOLDER)) {
    literal += text.slice(position, match.index);
    position = match.index + match[0].length;
    if (match[0] === "$${") {
      literal += "${";
      continue;
    }
    if (literal !== "") parts.push(literal);
    literal = "";
    const [, name = "SKILL_DIR", fallback] = match;
    parts.push(fallback === undefined ? { name } : { name, fallback });
  }
  literal += text.slice(position);
  if (literal !== "" || parts.length === 0) parts.push(literal);
  return parts;
}

export function placeholdersIn(text: string): Placeholder[] {
  return parsePlaceholders(text).filter((part) => typeof part !== "string");
}

export function isVariable(name: string): name is VariableName {
  return (VARIABLES as readonly string[]).includes(name);
}

/** Whether a name can be used in a placeholder. */
export function isParameterName(name: string): boolean {
  return /^[A-Za-z_][A-Za-z0-9_.-]{0,127}$/.test(name);
}

/** Whether the text has a `${` that does not begin a placeholder. */
export function hasStrayOpening(text: string): boolean {
  return text.replaceAll(PLACEHOLDER, "").includes("${");
}

interface TemplateString {
  readonly text: string;
  /** The name of its variable, header or option suggests a credential. */
  readonly credential: boolean;
}

/** Every string of a template that may have placeholders. */
export function templateStrings(template: ServerTemplate): TemplateString[] {
  const plain = [template.command, template.cwd, template.url];
  const named = [...Object.entries(template.env ?? {}), ...Object.entries(template.headers ?? {})];
  return [
    ...plain.flatMap((text) => (text === undefined ? [] : [{ text, credential: false }])),
    ...argumentStrings(template.args ?? []),
    ...named.map(([key, text]) => ({ text, credential: isCredentialName(key) })),
  ];
}

/** `--token=${X}`, `--token ${X}`. */
function argumentStrings(args: readonly string[]): TemplateString[] {
  return args.map((text, index) => {
    const [, ownOption] = /^--?([A-Za-z][\w-]*)=/.exec(text) ?? [];
    const [, optionBefore] = text.startsWith("-") ? [] : (/^--?([A-Za-z][\w-]*)$/.exec(args[index - 1] ?? "") ?? []);
    return { text, credential: isCredentialName(ownOption ?? optionBefore ?? "") };
  });
}

/** Names in its placeholders, those of variables too. */
export function parametersUsed(template: ServerTemplate): Set<string> {
  return new Set(templateStrings(template).flatMap(({ text }) => placeholdersIn(text).map((one) => one.name)));
}
