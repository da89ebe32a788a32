/**
 * The tables of docs/api.md, docs/config.md and docs/skill-frontmatter.md, made from the contract and the schemas. They stand between
 * `<!-- table: … -->` and `<!-- end of table -->`.
 */
import { z } from "zod";
import { configNode, entryNode, type SchemaNode } from "../src/config/config-schema.ts";
import { limitVariable } from "../src/config/read-config.ts";
import { describeAllowed } from "../src/config/validate-config.ts";
import { EVENT_SCOPES, type EventName } from "../src/contract/event-scopes.ts";
import { COMMANDS, EVENTS, EXTRA_TOOL_COMMANDS, type SocketCommand } from "../src/contract/websocket.ts";
import { OPERATIONS } from "../src/contract/operations.ts";
import { REST_ROUTES, type RestRoute } from "../src/contract/rest.ts";
import { GUARD_PROFILES } from "../src/model/config.ts";
import { ERROR_TABLE } from "../src/model/errors.ts";
import * as frontmatter from "../src/skills/schema/frontmatter-schema.ts";
import { allowedBy, PROBLEM_CODES } from "../src/skills/schema/validate-skill.ts";
import { WELL_KNOWN_NAMES, wellKnownByName } from "../src/skills/servers/well-known.ts";

const TABLE = /(<!-- table: (\S+) -->\n)[\s\S]*?(<!-- end of table -->)/g;

const TABLES: Readonly<Record<string, () => string[]>> = {
  ...{ routes, commands, events, errors, limits, profiles, auth },
  "skill-standard": () => skillKeys(frontmatter.StandardSchema),
  "skill-claude-code": () => skillKeys(frontmatter.ClaudeCodeSchema),
  "skill-openclaw": () => skillKeys(frontmatter.OpenClawSchema),
  "skill-metadata": () => skillKeys(frontmatter.OpenClawBlockSchema),
  "skill-requires": () => skillKeys(frontmatter.OpenClawBlockSchema, "requires"),
  "skill-toolcrib": () => skillKeys(frontmatter.ToolcribSchema),
  "skill-server": () => skillKeys(frontmatter.ServerSchema),
  "skill-template": () => skillKeys(frontmatter.TemplateSchema),
  "skill-parameter": () => skillKeys(frontmatter.ParameterSchema),
  "skill-well-known": wellKnownServers,
  "skill-codes": () => [
    ...head("code", "meaning"),
    ...Object.entries(PROBLEM_CODES).map(([name, meaning]) => row(code(name), meaning)),
  ],
};

/** The document with its tables as the contract and the schemas have them now. */
export function withTables(document: string): string {
  return document.replace(TABLE, (_, begin: string, name: string, end: string) => {
    const rows = TABLES[name]?.() ?? configKeys(nodeAt(name));
    return `${begin}${rows.join("\n")}\n${end}`;
  });
}

/** The object of the config's schema with such a path: `config.http.auth`, or `entry.tools` for an entry below `mcpServers`. */
function nodeAt(name: string): SchemaNode {
  const [root, ...path] = name.split(".");
  const start = root === "config" ? configNode() : root === "entry" ? entryNode() : undefined;
  const node = path.reduce((at, key) => objectIn(at?.properties?.[key]), start);
  if (node === undefined) throw new Error(`A document asks for a table "${name}", and there is none.`);
  return node;
}

/** The node itself, or the object that it may be, or those that are in it as a map or a list. */
function objectIn(node: SchemaNode | undefined): SchemaNode | undefined {
  if (node === undefined || node.properties !== undefined) return node;
  const { anyOf, additionalProperties: values, items } = node;
  return anyOf?.find((option) => option.type === "object") ?? (typeof values === "object" ? values : items);
}

function configKeys({ properties = {} }: SchemaNode): string[] {
  return [
    ...head("key", "value", "default", "meaning"),
    ...Object.entries(properties).map(([key, child]) =>
      row(code(key), describeAllowed(child), defaultOf(child), child.description ?? ""),
    ),
  ];
}

function limits(): string[] {
  return [
    ...head("key", "variable", "default", "meaning"),
    ...Object.entries(nodeAt("config.limits").properties ?? {}).map(([key, child]) =>
      row(code(key), code(limitVariable(key)), defaultOf(child), child.description ?? ""),
    ),
  ];
}

function defaultOf(node: SchemaNode): string {
  return node.default === undefined ? "" : code(JSON.stringify(node.default));
}

/** The keys that each profile of the guard sets. */
function profiles(): string[] {
  const keys = Object.keys(GUARD_PROFILES.off) as (keyof typeof GUARD_PROFILES.off)[];
  return [
    ...head("key", ...Object.keys(GUARD_PROFILES).map(code)),
    ...keys.map((key) => row(code(key), ...Object.values(GUARD_PROFILES).map((set) => set[key]))),
  ];
}

/** A table for each kind of login. */
function auth(): string[] {
  const { oneOf, anyOf } = entryNode().properties?.["auth"] ?? {};
  const kinds = (oneOf ?? anyOf ?? []).map((option) => {
    const kind = code(`{"type": ${JSON.stringify(option.properties?.["type"]?.const)}, …}`);
    return `${kind}\n\n${configKeys(option).join("\n")}`;
  });
  return [kinds.join("\n\n")];
}

function skillKeys(schema: z.ZodType, below?: string): string[] {
  const whole = frontmatter.jsonSchemaOf(schema);
  const node = below === undefined ? whole : whole.properties?.[below];
  const required = new Set(node?.required);
  return [
    ...head("key", "value", "meaning"),
    ...Object.entries(node?.properties ?? {}).map(([key, child]) => {
      const { minLength = 0, maxLength, description = "" } = child;
      const length = maxLength === undefined ? "" : `, ${minLength} to ${maxLength} characters`;
      return row(code(key), `${allowedBy(child)}${length}${required.has(key) ? " (required)" : ""}`, description);
    }),
  ];
}

function wellKnownServers(): string[] {
  const rows = WELL_KNOWN_NAMES.flatMap((name) => {
    const known = wellKnownByName(name);
    if (known === undefined) return [];
    const what = known.package === undefined ? known.template.url : `${known.template.command} ${known.package.spec}`;
    const parameters = known.parameters.map((one) => {
      const marks = [one.sensitive ? "sensitive" : "", one.required || one.default !== undefined ? "" : "optional"];
      const mark = marks.filter((word) => word !== "").join(", ");
      return `${code(one.name)}${mark === "" ? "" : ` (${mark})`}`;
    });
    return [row(code(name), code(what ?? ""), parameters.join(", "), known.description)];
  });
  return [...head("name", "started with", "parameters", "what it does"), ...rows];
}

function routes(): string[] {
  return [
    ...head("route", "operation", "scope", "what"),
    ...REST_ROUTES.map((route: RestRoute) => {
      const { scope, summary } = OPERATIONS[route.operation];
      return row(code(`${route.method} ${route.path}`), code(route.operation), code(scope), summary);
    }),
  ];
}

function commands(): string[] {
  return [
    ...head("command", "fields", "operation", "scope"),
    ...Object.entries(COMMANDS).map(([name, command]: [string, SocketCommand]) => {
      const { scope, input } = OPERATIONS[command.operation];
      const renamed = new Map(Object.entries(command.fields ?? {}).map(([ours, theirs]) => [theirs, ours]));
      const fields = membersOf(input, "input").map((member) => renamed.get(member) ?? member);
      return row(code(name), fields.map(code).join(" "), code(command.operation), code(scope));
    }),
    ...Object.entries(EXTRA_TOOL_COMMANDS).map(([name, { scope, input }]) =>
      row(code(name), membersOf(input, "input").map(code).join(" "), "", code(scope)),
    ),
  ];
}

function events(): string[] {
  return [
    ...head("event", "fields", "scope", "when"),
    // The keys of the table are the names.
    ...(Object.keys(EVENTS) as EventName[]).map((name) => {
      const { fields, summary } = EVENTS[name];
      return row(code(name), membersOf(fields, "output").map(code).join(" "), code(EVENT_SCOPES[name]), summary);
    }),
  ];
}

function errors(): string[] {
  return [
    ...head("code", "status", "meaning"),
    ...Object.entries(ERROR_TABLE).map(([name, { http, meaning }]) => row(code(name), String(http), meaning)),
  ];
}

function membersOf(schema: z.ZodType, io: "input" | "output"): string[] {
  return Object.keys(z.toJSONSchema(schema, { io }).properties ?? {});
}

function head(...titles: string[]): string[] {
  return [row(...titles), `|${"---|".repeat(titles.length)}`];
}

function row(...cells: string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
}

function code(text: string): string {
  return `\`${text}\``;
}
