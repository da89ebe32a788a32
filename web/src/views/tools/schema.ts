/** JSON Schemas of tools, as far as a form and a table need to understand them. */

export type Schema = Readonly<Record<string, unknown>>;

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** References to other documents, and chains that never end, stay as they are. */
const LONGEST_CHAIN = 20;

/** The schema that a local `$ref` leads to, with what stands beside the reference. */
export function resolved(schema: unknown, root: Schema): Schema {
  let current: Schema = isObject(schema) ? schema : {};
  for (let step = 0; step < LONGEST_CHAIN; step += 1) {
    const reference = current["$ref"];
    if (typeof reference !== "string" || !reference.startsWith("#")) return current;
    const target = atPointer(root, reference.slice(1));
    if (!isObject(target)) return current;
    const { $ref: _, ...beside } = current;
    current = { ...target, ...beside };
  }
  return {};
}

function atPointer(root: unknown, pointer: string): unknown {
  if (pointer === "") return root;
  let current: unknown = root;
  for (const part of pointer.slice(1).split("/")) {
    const key = decoded(part).replaceAll("~1", "/").replaceAll("~0", "~");
    if (Array.isArray(current)) current = current[Number(key)];
    else if (isObject(current) && Object.hasOwn(current, key)) current = current[key];
    else return undefined;
  }
  return current;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The members of `allOf` are laid over each other; a form needs no more of them. */
export function merged(schema: unknown, root: Schema): Schema {
  const own = resolved(schema, root);
  const all = own["allOf"];
  if (!Array.isArray(all)) return own;
  const { allOf: _, ...rest } = own;
  return all
    .map((each: unknown) => resolved(each, root))
    .reduce<Schema>(
      (sum, each) => ({
        ...each,
        ...sum,
        properties: { ...propertiesOf(each), ...propertiesOf(sum) },
        required: [...new Set([...requiredOf(each), ...requiredOf(sum)])],
      }),
      rest,
    );
}

export function propertiesOf(schema: Schema): Schema {
  return isObject(schema["properties"]) ? schema["properties"] : {};
}

export function requiredOf(schema: Schema): readonly string[] {
  const required = schema["required"];
  return Array.isArray(required) ? required.filter((each) => typeof each === "string") : [];
}

/** `anyOf` or `oneOf`, whichever is there. */
export function choicesOf(schema: Schema): readonly unknown[] | undefined {
  const choices = schema["oneOf"] ?? schema["anyOf"];
  return Array.isArray(choices) && choices.length > 0 ? choices : undefined;
}

/** Its types, without null. */
export function typesOf(schema: Schema): readonly string[] {
  const { type } = schema;
  const types =
    typeof type === "string" ? [type] : Array.isArray(type) ? type.filter((each) => typeof each === "string") : [];
  if (types.length === 0 && isObject(schema["properties"])) return ["object"];
  if (types.length === 0 && schema["items"] !== undefined) return ["array"];
  return types.filter((each) => each !== "null");
}

export function textOf(schema: Schema, key: string): string | undefined {
  const value = schema[key];
  return typeof value === "string" && value !== "" ? value : undefined;
}
