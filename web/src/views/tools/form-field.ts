/** The kind of input for a part of a schema. */
import { t } from "../../messages/messages.ts";
import { toolWords } from "../../messages/tool-words.ts";
import { choicesOf, isObject, merged, propertiesOf, requiredOf, type Schema, textOf, typesOf } from "./schema.ts";

interface Common {
  readonly description: string | undefined;
  readonly schema: Schema;
}

export type FormField = Common &
  (
    | { readonly kind: "text"; readonly long: boolean; readonly format: string | undefined }
    | { readonly kind: "number"; readonly integer: boolean }
    | { readonly kind: "boolean" }
    | {
        readonly kind: "one-of";
        readonly values: readonly unknown[];
        /** The name of each value that has one. */
        readonly names?: readonly (string | undefined)[];
      }
    | { readonly kind: "list"; readonly items: Schema }
    | { readonly kind: "object"; readonly properties: readonly Property[] }
    | { readonly kind: "choice"; readonly options: readonly { readonly label: string; readonly schema: Schema }[] }
    /** No input fits: JSON is written by hand. */
    | { readonly kind: "json" }
  );

export interface Property {
  readonly name: string;
  readonly required: boolean;
  readonly schema: Schema;
}

/** Below this depth parts are written as JSON; it also ends schemas that hold themselves. */
const DEEPEST = 5;
const LONG_NAMES = /^(content|text|body|code|query|prompt|message|description|sql|script|markdown|html)$/i;

export function fieldOf(
  given: unknown,
  root: Schema,
  options: { readonly name?: string; readonly depth?: number } = {},
): FormField {
  const schema = merged(given, root);
  const { name = "", depth = 0 } = options;
  const common = { schema, description: textOf(schema, "description") };
  if (depth > DEEPEST) return { ...common, kind: "json" };
  if (schema["const"] !== undefined) return { ...common, kind: "one-of", values: [schema["const"]] };
  if (Array.isArray(schema["enum"])) {
    const names: unknown = schema["enumNames"];
    const texts = Array.isArray(names) ? names.map((name) => (typeof name === "string" ? name : undefined)) : undefined;
    return { ...common, kind: "one-of", values: schema["enum"], ...(texts === undefined ? {} : { names: texts }) };
  }
  const choices = choicesOf(schema);
  const constants = choices?.filter((choice) => isObject(choice)).filter((choice) => choice["const"] !== undefined);
  if (constants !== undefined && constants.length === choices?.length) {
    const names = constants.map((choice) => textOf(choice, "title"));
    return { ...common, kind: "one-of", values: constants.map((choice) => choice["const"]), names };
  }
  if (choices !== undefined) return choiceField(common, choices, root, options);
  const types = typesOf(schema);
  // Several types: a text for one of them could not be told from the other.
  if (types.length !== 1) return { ...common, kind: "json" };
  switch (types[0]) {
    case "string":
      return {
        ...common,
        kind: "text",
        long: LONG_NAMES.test(name) || Number(schema["maxLength"] ?? 0) > 500,
        format: textOf(schema, "format"),
      };
    case "number":
    case "integer":
      return { ...common, kind: "number", integer: types[0] === "integer" };
    case "boolean":
      return { ...common, kind: "boolean" };
    case "array":
      return isObject(schema["items"])
        ? { ...common, kind: "list", items: schema["items"] }
        : { ...common, kind: "json" };
    case "object":
      return objectField(common);
    default:
      return { ...common, kind: "json" };
  }
}

function objectField(common: Common): FormField {
  const required = new Set(requiredOf(common.schema));
  const entries = Object.entries(propertiesOf(common.schema));
  // Free keys have no inputs of their own.
  if (entries.length === 0) return { ...common, kind: "json" };
  const properties = entries.map(([name, each]) => ({
    name,
    required: required.has(name),
    schema: isObject(each) ? each : {},
  }));
  // What must be there comes first.
  return {
    ...common,
    kind: "object",
    properties: properties.toSorted((a, b) => Number(b.required) - Number(a.required)),
  };
}

function choiceField(
  common: Common,
  choices: readonly unknown[],
  root: Schema,
  options: { name?: string; depth?: number },
): FormField {
  const { oneOf: _, anyOf: __, ...outer } = common.schema;
  const real = choices.map((choice) => merged(choice, root)).filter((choice) => choice["type"] !== "null");
  const constants = real.map((choice) => choice["const"]);
  if (constants.every((value) => value !== undefined)) return { ...common, kind: "one-of", values: constants };
  const [only] = real;
  // `anyOf: [something, null]` is how an optional value is written by many.
  if (real.length === 1 && only !== undefined) {
    const inner = fieldOf({ ...outer, ...only }, root, { ...options, depth: (options.depth ?? 0) + 1 });
    return { ...inner, description: common.description ?? inner.description };
  }
  return {
    ...common,
    kind: "choice",
    options: real.map((choice, index) => ({ label: choiceLabel(choice, index), schema: withOuter(outer, choice) })),
  };
}

/** Keys beside the choice hold for each of its members. */
function withOuter(outer: Schema, choice: Schema): Schema {
  const { title: _, description: __, ...rest } = outer;
  return {
    ...rest,
    ...choice,
    ...(isObject(outer["properties"]) || isObject(choice["properties"])
      ? {
          properties: { ...propertiesOf(outer), ...propertiesOf(choice) },
          required: [...new Set([...requiredOf(outer), ...requiredOf(choice)])],
        }
      : {}),
  };
}

function choiceLabel(choice: Schema, index: number): string {
  const title = textOf(choice, "title");
  if (title !== undefined) return title;
  const tag = Object.entries(propertiesOf(choice)).find(
    ([, each]) => isObject(each) && typeof each["const"] === "string",
  );
  if (tag !== undefined && isObject(tag[1])) return String(tag[1]["const"]);
  const [type] = typesOf(choice);
  const keys = requiredOf(choice);
  if (type === "object" && keys.length > 0) return keys.join(", ");
  return type ?? t(toolWords.choiceNumber, { number: index + 1 });
}
