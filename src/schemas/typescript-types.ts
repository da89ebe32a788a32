/** TypeScript types for the JSON Schema of a tool. What the language cannot say is left wider, never narrower. */
import { escapeJson, showHidden } from "../base/visible-text.ts";
import { isJsonObject, referencedIn } from "../model/json.ts";

/** A schema may nest without end. */
const MAX_DEPTH = 40;
const IDENTIFIER = /^[A-Za-z_$][\w$]*$/;

export interface TypeScriptType {
  /** An expression. */
  readonly type: string;
  /** Of the types that it refers to. */
  readonly declarations: readonly string[];
}

/** @param name Begins the names of types that the schema defines for itself. */
export function typeScriptType(schema: unknown, name: string): TypeScriptType {
  const declarations: string[] = [];
  /** The names of referenced schemas, by reference. */
  const names = new Map<string, string>();

  const typeOf = (part: unknown, depth: number): string => {
    if (part === false) return "never";
    if (!isJsonObject(part) || depth > MAX_DEPTH) return "unknown";
    if (typeof part["$ref"] === "string") return referenced(part["$ref"], depth);
    if ("const" in part) return literal(part["const"]);
    if (Array.isArray(part["enum"])) return union(part["enum"].map(literal));
    const parts = [ownType(part, depth)];
    for (const key of ["anyOf", "oneOf"]) {
      const options = part[key];
      if (Array.isArray(options)) parts.push(union(options.map((option) => typeOf(option, depth + 1))));
    }
    if (Array.isArray(part["allOf"])) parts.push(...part["allOf"].map((each) => typeOf(each, depth + 1)));
    const type = intersection(parts);
    return part["nullable"] === true ? union([type, "null"]) : type;
  };

  const ownType = (part: Record<string, unknown>, depth: number): string => {
    const { type } = part;
    if (Array.isArray(type)) return union(type.map((each) => ownType({ ...part, type: each }, depth)));
    switch (type) {
      case "string":
      case "boolean":
      case "null":
        return type;
      case "number":
      case "integer":
        return "number";
      case "array":
        return arrayType(part, depth);
      case "object":
        return objectType(part, depth);
      default:
        return isJsonObject(part["properties"]) ? objectType(part, depth) : "unknown";
    }
  };

  const arrayType = ({ items, prefixItems }: Record<string, unknown>, depth: number): string => {
    const first = Array.isArray(prefixItems) ? prefixItems : Array.isArray(items) ? items : undefined;
    if (first === undefined) return `${grouped(typeOf(items, depth + 1))}[]`;
    const rest = Array.isArray(prefixItems) && items === false ? [] : ["...unknown[]"];
    return `[${[...first.map((each) => `${grouped(typeOf(each, depth + 1))}?`), ...rest].join(", ")}]`;
  };

  const objectType = (part: Record<string, unknown>, depth: number): string => {
    const properties = isJsonObject(part["properties"]) ? Object.entries(part["properties"]) : [];
    const required = new Set(Array.isArray(part["required"]) ? part["required"] : []);
    const more = part["additionalProperties"];
    if (properties.length === 0) {
      if (more === false) return "Record<string, never>";
      return `Record<string, ${isJsonObject(more) ? typeOf(more, depth + 1) : "unknown"}>`;
    }
    const lines = properties.flatMap(([key, value]) => {
      const text = isJsonObject(value) && typeof value["description"] === "string" ? value["description"] : "";
      const property = `${propertyName(key)}${required.has(key) ? "" : "?"}: ${typeOf(value, depth + 1)};`;
      return text.trim() === "" ? [property] : [docComment(text), property];
    });
    // An index signature must fit every property.
    if (more === true || isJsonObject(more)) lines.push("[key: string]: unknown;");
    return `{\n${lines.join("\n")}\n}`;
  };

  const referenced = (reference: string, depth: number): string => {
    const known = names.get(reference);
    if (known !== undefined) return known;
    const target = referencedIn(schema, reference);
    if (target === undefined || depth > MAX_DEPTH) return "unknown";
    const own = uniqueName(`${name}${pascalCase(reference.split("/").at(-1) ?? "")}`, new Set(names.values()));
    // Before its type, which may refer to itself.
    names.set(reference, own);
    declarations.push(indented(`export type ${own} = ${typeOf(target, 0)};`));
    return own;
  };

  return { type: indented(typeOf(schema, 0)), declarations };
}

function indented(type: string): string {
  let depth = 0;
  return type
    .split("\n")
    .map((line) => {
      if (line.startsWith("}")) depth -= 1;
      const shown = "  ".repeat(depth) + line;
      if (line.endsWith("{")) depth += 1;
      return shown;
    })
    .join("\n");
}

function literal(value: unknown): string {
  if (value === null || typeof value === "string" || typeof value === "number" || typeof value === "boolean") {
    return quoted(value);
  }
  return "unknown";
}

function union(types: readonly string[]): string {
  const unique = [...new Set(types.filter((type) => type !== "never"))];
  if (unique.includes("unknown")) return "unknown";
  return unique.length === 0 ? "never" : unique.join(" | ");
}

function intersection(types: readonly string[]): string {
  const unique = [...new Set(types.filter((type) => type !== "unknown"))];
  if (unique.length === 0) return "unknown";
  return unique.length === 1 ? (unique[0] ?? "unknown") : unique.map((type) => `(${type})`).join(" & ");
}

function grouped(type: string): string {
  return /[|&]/.test(type) ? `(${type})` : type;
}

/** Hidden characters are escaped: in an editor they could show another program than the one that runs. */
export function quoted(value: string | number | boolean | null): string {
  return escapeJson(JSON.stringify(value));
}

export function propertyName(key: string): string {
  // As a plain name it would set the prototype.
  if (key === "__proto__") return '["__proto__"]';
  return IDENTIFIER.test(key) ? key : quoted(key);
}

/** `get-structured content` becomes `GetStructuredContent`; never empty, and never with a digit first. */
export function pascalCase(text: string): string {
  const words = text.split(/[^A-Za-z0-9]+/).filter((word) => word !== "");
  const name = words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join("");
  return /^[A-Za-z]/.test(name) ? name : `_${name}`;
}

export function uniqueName(wanted: string, taken: ReadonlySet<string>): string {
  if (!taken.has(wanted)) return wanted;
  for (let number = 2; ; number += 1) if (!taken.has(`${wanted}${number}`)) return `${wanted}${number}`;
}

/** One line, which the text cannot end. */
export function docComment(text: string): string {
  const line = showHidden(text).replace(/\s+/g, " ").trim().replaceAll("*/", "*\u2215");
  return `/** ${line.length > 300 ? `${line.slice(0, 299)}…` : line} */`;
}
