/** The parameters of a server: those that are declared, and those that its template uses without declaring them. */
import { isJsonObject } from "../../model/json.ts";
import type { ServerParameter, ServerTemplate } from "../../model/skill.ts";
import { isCredentialName } from "../../secrets/credential-names.ts";
import { abbreviate } from "../read/read-warnings.ts";
import {
  type Field,
  type FieldPath,
  ServerFields,
  scalarText,
  textOf,
  type Warn,
  warnOfType,
} from "./server-fields.ts";
import {
  isParameterName,
  isVariable,
  parametersUsed,
  placeholdersIn,
  templateStrings,
  VARIABLES,
} from "./placeholders.ts";

/** `{NAME: {description, …}}`, `[{name: NAME, …}]`, `[NAME]`, and a bare text for a description. */
export function readParameters(field: Field | undefined, warn: Warn): ServerParameter[] {
  if (field === undefined) return [];
  const { value, path } = field;
  const found = new Map<string, ServerParameter>();
  const add = (name: string, raw: unknown, at: FieldPath): void => {
    if (!isParameterName(name) || isVariable(name)) {
      const why = isVariable(name) ? "is set by Toolcrib itself" : "cannot be used in a placeholder";
      warn("INVALID_PARAMETER", `The parameter ${JSON.stringify(abbreviate(name))} ${why}; it is ignored.`, at);
    } else if (!found.has(name)) {
      const parameter = readParameter(name, raw, at, warn);
      if (parameter !== undefined) found.set(name, parameter);
    }
  };
  if (isJsonObject(value)) {
    for (const [name, raw] of Object.entries(value)) add(name.trim(), raw, [...path, name]);
  } else if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      const name = isJsonObject(item) ? scalarText(item["name"]) : scalarText(item);
      if (name === undefined) warnOfType({ value: item, path: [...path, index] }, "a parameter with a name", warn);
      else add(name, isJsonObject(item) ? item : null, [...path, index]);
    }
  } else warnOfType(field, "a map of parameters", warn);
  return [...found.values()];
}

/** One declaration. A sensitive parameter never has a default. */
export function readParameter(name: string, raw: unknown, path: FieldPath, warn: Warn): ServerParameter | undefined {
  if (raw === null || raw === undefined || raw === "") return parameter({ name }, path, warn);
  if (typeof raw === "string") return parameter({ name, description: raw.trim() }, path, warn);
  if (!isJsonObject(raw)) {
    const text = scalarText(raw);
    if (text !== undefined) return parameter({ name, default: text }, path, warn);
    warnOfType({ value: raw, path }, "a description of the parameter", warn);
    return parameter({ name }, path, warn);
  }
  const fields = new ServerFields(raw, path);
  fields.take("name");
  const description = fields.takeText(warn, "description", "purpose", "label", "title");
  const type = fields.takeText(warn, "type", "format");
  const required = readSwitch(fields.take("required"), warn);
  const isOptional = readSwitch(fields.take("optional"), warn);
  const sensitive = readSwitch(fields.take("sensitive", "secret"), warn);
  const examples = fields.take("example", "examples", "placeholder");
  const defaultField = fields.take("default", "defaultValue");
  const first: unknown = Array.isArray(examples?.value) ? examples.value[0] : examples?.value;
  fields.warnOfRest(warn);
  return parameter(
    {
      name,
      description,
      required: required ?? (isOptional === undefined ? undefined : !isOptional),
      sensitive: sensitive ?? (type !== undefined && /^(?:secret|password)$/i.test(type) ? true : undefined),
      default: defaultField === undefined ? undefined : defaultText(defaultField, warn),
      example: examples === undefined ? undefined : textOf({ value: first, path: examples.path }, warn),
    },
    path,
    warn,
  );
}

interface Draft {
  readonly name: string;
  readonly description?: string | undefined;
  readonly required?: boolean | undefined;
  readonly sensitive?: boolean | undefined;
  readonly default?: string | undefined;
  readonly example?: string | undefined;
}

function parameter(draft: Draft, path: FieldPath, warn: Warn): ServerParameter {
  const { name, description, example } = draft;
  // The author has a say in one direction only: a value that is kept needlessly does no harm.
  const sensitive = draft.sensitive === true || isCredentialName(name);
  if (sensitive && draft.sensitive !== true) {
    const said = draft.sensitive === false ? "says that it is not sensitive" : "does not say whether it is sensitive";
    warn("ASSUMED_SENSITIVE", `The parameter ${name} ${said}; its name suggests that it is.`, path);
  }
  const fallback = usableDefault(name, draft.default, sensitive, path, warn);
  return {
    name,
    description,
    required: draft.required ?? fallback === undefined,
    sensitive,
    default: fallback,
    example,
  };
}

function usableDefault(
  name: string,
  text: string | undefined,
  sensitive: boolean,
  path: FieldPath,
  warn: Warn,
): string | undefined {
  if (text === undefined) return undefined;
  if (sensitive) {
    warn("SENSITIVE_DEFAULT", `The parameter ${name} is sensitive, so its default is ignored.`, path);
    return undefined;
  }
  const unknown = placeholdersIn(text).find((one) => !isVariable(one.name));
  if (unknown === undefined) return text;
  const known = VARIABLES.map((one) => `\${${one}}`).join(", ");
  warn(
    "UNKNOWN_VARIABLE",
    `The default of ${name} uses \${${abbreviate(unknown.name)}} and is ignored; the known variables are ${known}.`,
    path,
  );
  return undefined;
}

function defaultText(field: Field, warn: Warn): string | undefined {
  const text = typeof field.value === "string" ? field.value : scalarText(field.value);
  if (text === undefined) warnOfType(field, "text", warn);
  return text;
}

function readSwitch(field: Field | undefined, warn: Warn): boolean | undefined {
  if (field === undefined) return undefined;
  const text = scalarText(field.value) ?? "";
  if (/^(?:true|yes|on|1)$/i.test(text)) return true;
  if (/^(?:false|no|off|0)$/i.test(text)) return false;
  warnOfType(field, "true or false", warn);
  return undefined;
}

/** The declared parameters, completed from the table of well-known servers as far as the template uses them. */
export function mergedParameters(
  declared: readonly ServerParameter[],
  known: readonly ServerParameter[],
  template: ServerTemplate,
): ServerParameter[] {
  const used = parametersUsed(template);
  const all = new Map(known.filter(({ name }) => used.has(name)).map((one) => [one.name, one]));
  for (const one of declared) {
    const other = all.get(one.name);
    const { default: fallback, ...merged } = { ...other, ...one };
    const sensitive = one.sensitive || other?.sensitive === true;
    const isDefaultKnown = one.default === undefined && other?.default !== undefined;
    all.set(one.name, {
      ...merged,
      sensitive,
      required: isDefaultKnown ? other.required : one.required,
      ...(sensitive || fallback === undefined ? {} : { default: fallback }),
    });
  }
  return [...all.values()];
}

/**
 * The declared parameters, and one for each undeclared placeholder. A default in a placeholder applies if the declaration
 * has none. A parameter that is used as a credential is sensitive.
 */
export function withImpliedParameters(
  declared: readonly ServerParameter[],
  template: ServerTemplate,
  path: FieldPath,
  warn: Warn,
): ServerParameter[] {
  const all = new Map(declared.map((one) => [one.name, one]));
  for (const { text, credential } of templateStrings(template)) {
    for (const { name, fallback } of placeholdersIn(text)) {
      if (isVariable(name)) continue;
      const declaredOne = all.get(name);
      if (declaredOne === undefined) {
        all.set(name, impliedParameter({ name, fallback, credential }, path, warn));
        continue;
      }
      const known = credential && !declaredOne.sensitive ? kept(declaredOne) : declaredOne;
      if (fallback !== undefined && known.default === undefined) adopt(known, fallback);
    }
  }
  return [...all.values()];

  function kept({ default: fallback, ...known }: ServerParameter): ServerParameter {
    warn("ASSUMED_SENSITIVE", `The parameter ${known.name} is used as a credential, so it is sensitive.`, path);
    usableDefault(known.name, fallback, true, path, warn);
    const sensitive = { ...known, sensitive: true, required: known.required || fallback !== undefined };
    all.set(known.name, sensitive);
    return sensitive;
  }

  function adopt(known: ServerParameter, fallback: string): void {
    const text = usableDefault(known.name, fallback, known.sensitive, path, warn);
    // `required` was true only because there was no default.
    if (text !== undefined) all.set(known.name, { ...known, default: text, required: false });
  }
}

function impliedParameter(
  use: { name: string; fallback: string | undefined; credential: boolean },
  path: FieldPath,
  warn: Warn,
): ServerParameter {
  const { name } = use;
  const sensitive = use.credential || isCredentialName(name);
  const fallback = usableDefault(name, use.fallback, sensitive, path, warn);
  const kind = `${fallback === undefined ? "required" : "optional"}${sensitive ? " and sensitive" : ""}`;
  warn("IMPLIED_PARAMETER", `\${${name}} is used but not declared; it is read as a parameter, ${kind}.`, path);
  return {
    name,
    required: fallback === undefined,
    sensitive,
    default: fallback,
    implied: true,
  };
}
