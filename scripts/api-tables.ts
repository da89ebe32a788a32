/** The tables of docs/api.md, made from the contract. They stand between `<!-- table: … -->` and `<!-- end of table -->`. */
import { z } from "zod";
import { EVENT_SCOPES, type EventName } from "../src/contract/event-scopes.ts";
import { COMMANDS, EVENTS, EXTRA_TOOL_COMMANDS, type SocketCommand } from "../src/contract/websocket.ts";
import { OPERATIONS } from "../src/contract/operations.ts";
import { REST_ROUTES, type RestRoute } from "../src/contract/rest.ts";
import { ERROR_TABLE } from "../src/model/errors.ts";

const TABLE = /(<!-- table: ([a-z]+) -->\n)[\s\S]*?(<!-- end of table -->)/g;

const TABLES: Readonly<Record<string, () => string[]>> = { routes, commands, events, errors };

/** The document with its tables as the contract has them now. */
export function withApiTables(document: string): string {
  return document.replace(TABLE, (_, begin: string, name: string, end: string) => {
    const rows = TABLES[name];
    if (rows === undefined) throw new Error(`docs/api.md asks for a table "${name}", and there is none.`);
    return `${begin}${rows().join("\n")}\n${end}`;
  });
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
