/**
 * Walks a value beside its schema before zod sees it: unknown keys become warnings and are dropped, where zod could only
 * say "unrecognized".
 */
import { isJsonObject } from "../model/json.ts";
import type { ConfigPath } from "./config-path.ts";
import type { Diagnostic } from "./diagnostics.ts";
import type { Document } from "./document.ts";
import type { SchemaNode } from "./json-schema.ts";
import { nearest } from "./nearest.ts";

/** Keys of other programs' files that people carry over, and what they are called here. */
const CALLED_HERE: Readonly<Record<string, string>> = {
  type: "transport",
  disabled: "enabled",
  serverUrl: "url",
  httpUrl: "url",
  workingDir: "cwd",
  workingDirectory: "cwd",
  allowedAgentRoles: "roles",
  connectionTimeoutMs: "timeout",
  requestTimeoutMs: "toolTimeout",
  restartOnCrash: "restart",
  maxRestarts: "restart",
  servers: "mcpServers",
};

interface Inspection {
  /** The value without its unknown keys. */
  readonly value: unknown;
  readonly warnings: Diagnostic[];
}

export function inspect(document: Document, path: ConfigPath, value: unknown, node: SchemaNode): Inspection {
  const warnings: Diagnostic[] = [];

  function walk(here: ConfigPath, found: unknown, schema: SchemaNode): unknown {
    const options = schema.anyOf ?? schema.oneOf;
    if (options !== undefined) {
      const option = chooseOption(options, found);
      return option === undefined ? found : walk(here, found, option);
    }
    if (Array.isArray(found) && schema.items !== undefined) {
      const items = schema.items;
      return found.map((item, index) => walk([...here, index], item, items));
    }
    if (isJsonObject(found) && schema.type === "object") return walkObject(here, found, schema);
    return found;
  }

  function walkObject(here: ConfigPath, found: Readonly<Record<string, unknown>>, schema: SchemaNode): unknown {
    const kept: Record<string, unknown> = {};
    for (const [key, child] of Object.entries(found)) {
      // Only a config given in code can hold it, and there it means that the key is absent.
      if (child === undefined) continue;
      const known = schema.properties !== undefined && Object.hasOwn(schema.properties, key);
      const childSchema = known ? schema.properties?.[key] : schema.additionalProperties;
      if (typeof childSchema === "object") kept[key] = walk([...here, key], child, childSchema);
      else warnings.push(unknownKey(document, [...here, key], key, Object.keys(schema.properties ?? {})));
    }
    return kept;
  }

  return { value: walk(path, value, node), warnings };
}

/** The schema at a path, taking in each union the option that fits the value there. */
export function schemaAt(node: SchemaNode, path: ConfigPath, value: unknown): SchemaNode | undefined {
  const [step, ...rest] = path;
  const options = node.anyOf ?? node.oneOf;
  if (step === undefined) return node;
  if (options !== undefined) {
    const option = chooseOption(options, value);
    return option === undefined ? unionOf(options, path, value) : schemaAt(option, path, value);
  }
  if (typeof step === "number") {
    return node.items === undefined
      ? undefined
      : schemaAt(node.items, rest, Array.isArray(value) ? value[step] : undefined);
  }
  const child = node.properties?.[step] ?? node.additionalProperties;
  return typeof child === "object" ? schemaAt(child, rest, isJsonObject(value) ? value[step] : undefined) : undefined;
}

/** What any of the options says of a path, for a value that fits none of them, such as an unknown `auth.type`. */
function unionOf(options: readonly SchemaNode[], path: ConfigPath, value: unknown): SchemaNode | undefined {
  const found = options.flatMap((option) => {
    const child = schemaAt(option, path, value);
    return child === undefined ? [] : [child];
  });
  return found.length > 1 ? { anyOf: found } : found[0];
}

export function unknownKey(document: Document, path: ConfigPath, key: string, known: readonly string[]): Diagnostic {
  const here = CALLED_HERE[key];
  const meant = here !== undefined && known.includes(here) ? here : nearest(key, known);
  return document.report(path, {
    severity: "warning",
    code: "unknown_key",
    message: `unknown key ${JSON.stringify(key)} is ignored`,
    hint: meant === undefined ? `known keys here: ${known.join(", ")}` : `did you mean ${JSON.stringify(meant)}?`,
    atKey: true,
  });
}

function chooseOption(options: readonly SchemaNode[], value: unknown): SchemaNode | undefined {
  return options.find((option) => fits(option, value));
}

/** Shallow: whether a value is meant for this option, not whether it is right in every part. */
function fits(node: SchemaNode, value: unknown): boolean {
  const options = node.anyOf ?? node.oneOf;
  if (options !== undefined) return options.some((option) => fits(option, value));
  if (node.const !== undefined) return node.const === value;
  if (node.enum !== undefined) return node.enum.includes(value);
  switch (node.type) {
    case "object":
      return (
        isJsonObject(value) &&
        Object.entries(node.properties ?? {}).every(
          ([key, child]) => child.const === undefined || child.const === value[key],
        )
      );
    case "array":
      return Array.isArray(value);
    case "integer":
    case "number":
      return typeof value === "number" && value >= (node.minimum ?? -Infinity);
    case "null":
      return value === null;
    case undefined:
      return true;
    default:
      return typeof value === node.type;
  }
}
