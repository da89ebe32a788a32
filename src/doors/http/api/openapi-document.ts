/** The OpenAPI 3.1 document, made from the contract's tables of operations and routes. */
import { isDeepStrictEqual } from "node:util";
import { z } from "zod";
import { EXAMPLES } from "../../../contract/operation-examples.ts";
import { ErrorAnswerSchema, type OperationName, OPERATIONS } from "../../../contract/operations.ts";
import { AUDIT_EXPORT_PATH, EXCLUDED_EXPORT_INPUTS, REST_ROUTES, type RestRoute } from "../../../contract/rest.ts";
import { type ErrorCode, type ErrorObject, ERROR_TABLE } from "../../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../../model/json.ts";

export type OpenApiDocument = JsonObject & {
  readonly paths: Readonly<Record<string, Readonly<Record<string, JsonObject>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, JsonObject>>;
    readonly responses: JsonObject;
  } & JsonObject;
};

const ABOUT = `The API of a running Toolcrib hub. Every error has the form of \`Error\`, whatever its status.

Tokens have scopes: \`read\` lists and reads, \`call\` also calls tools, \`approve\` answers waiting calls of others, and \`admin\`
does everything. Each operation names the scope that it needs. A caller that is bound to a role sees only what that role sees.

Lists come in pages: pass \`nextCursor\` of one response as \`cursor\` of the next request. A method that a path does not have is
answered with 405 and \`Allow\`. \`GET\` supports \`If-None-Match\`, and \`HEAD\` works wherever \`GET\` does.`;

const TAGS: readonly (readonly [prefix: string, name: string])[] = [
  ["/mcp/servers", "Servers"],
  ["/mcp/tools", "Tools"],
  ["/mcp", "Resources and prompts"],
  ["/skills", "Skills"],
  ["/sessions", "Sessions"],
  ["/approvals", "Approvals"],
  ["/pins", "Pins"],
  ["/policy", "Policy"],
  ["/audit", "Audit"],
  ["/", "Hub"],
];

export function openApiDocument(version: string): OpenApiDocument {
  const components = new Components();
  components.output(ErrorAnswerSchema);
  const paths: Record<string, Record<string, JsonObject>> = {};
  for (const route of REST_ROUTES) {
    (paths[route.path] ??= {})[route.method.toLowerCase()] = operationOf(route, components);
  }
  return {
    openapi: "3.1.0",
    jsonSchemaDialect: "https://json-schema.org/draft/2020-12/schema",
    info: { title: "Toolcrib", version, description: ABOUT, license: { name: "MIT", identifier: "MIT" } },
    // From where the document is, which may be below the path of a proxy.
    servers: [{ url: "../v1", description: "This hub." }],
    tags: [...new Set(TAGS.map(([, name]) => name))].map((name) => ({ name })),
    security: [{ token: [] }, { page: [], pageKey: [] }],
    paths: { ...paths, ...otherPaths(components) },
    components: {
      schemas: components.schemas,
      responses: errorResponses(),
      securitySchemes: {
        token: { type: "http", scheme: "bearer", description: "A token of `http.auth`, or the hub's own." },
        page: {
          type: "apiKey",
          in: "cookie",
          name: "toolcrib-4700",
          description: "The login of the web page. The number is the port; under https the name is `__Host-toolcrib`.",
        },
        pageKey: {
          type: "apiKey",
          in: "header",
          name: "x-toolcrib",
          description: "The page key from the login response. The cookie is valid only together with it.",
        },
      },
    },
  };
}

export function tagOf(path: string): string {
  return TAGS.find(([prefix]) => path.startsWith(prefix))?.[1] ?? "Hub";
}

function operationOf(given: RestRoute, components: Components): JsonObject {
  const { operation: name, method, path, status = 200 } = given;
  const { scope, output } = OPERATIONS[name];
  const { parameters, requestBody } = requestParts(given, components);
  return {
    ...nameOf(given),
    tags: [tagOf(path)],
    description: `Needs the scope \`${scope}\`.`,
    "x-scope": scope,
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(requestBody === undefined ? {} : { requestBody }),
    responses: {
      [status]: {
        description: status === 201 ? "Created." : "Done.",
        ...headersOf(given),
        content: { "application/json": { schema: components.output(output), example: EXAMPLES[name].output } },
      },
      ...(method === "GET" && name !== "getServer" ? { 304: { description: "Not modified." } } : {}),
      ...errorRefs(...errorStatuses(given)),
    },
  };
}

/** Two routes lead to the tools. */
function nameOf({ operation, path }: RestRoute): { readonly operationId: string; readonly summary: string } {
  if (path !== "/mcp/tools/{serverId}") return { operationId: operation, summary: OPERATIONS[operation].summary };
  return { operationId: "listToolsOfServer", summary: "Tools of one server that the caller sees." };
}

const ETAG = { description: "Of the response, or of a single server's entry.", schema: { type: "string" } };
const LOCATION = { description: "The URL of the new entry.", schema: { type: "string" } };

function headersOf({ operation, method, status }: RestRoute): JsonObject {
  const isTagged = method === "GET" || operation === "addServer" || operation === "updateServer";
  if (!isTagged && status !== 201) return {};
  return { headers: { ...(isTagged ? { ETag: ETAG } : {}), ...(status === 201 ? { Location: LOCATION } : {}) } };
}

interface RequestParts {
  readonly parameters: JsonObject[];
  readonly requestBody?: JsonObject;
}

/** Parameters and body of a route, with the operation's example spread over them. */
function requestParts(route: RestRoute, components: Components): RequestParts {
  const schema = components.input(OPERATIONS[route.operation].input);
  const properties = asObject(schema["properties"]);
  const required = Array.isArray(schema["required"]) ? schema["required"] : [];
  const input: JsonObject = { ...EXAMPLES[route.operation].input };
  const inPath = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name);
  const rest = Object.keys(properties).filter((name) => !inPath.includes(name) && name !== "ifMatch");
  const parameters = inPath.map((name) => parameter("path", name, properties[name], { required: true, input }));
  if (Object.hasOwn(properties, "ifMatch")) parameters.push(IF_MATCH);
  if (route.from === "query") {
    const options = (name: string) => ({ required: required.includes(name), input });
    return {
      parameters: [...parameters, ...rest.map((name) => parameter("query", name, properties[name], options(name)))],
    };
  }
  if (route.from === undefined) return { parameters };
  const members = Object.fromEntries(rest.map((name) => [name, properties[name]]));
  const needed = rest.filter((name) => required.includes(name));
  const content = { "application/json": bodyOf(route.from, members, needed, input) };
  return { parameters, requestBody: { required: route.from !== "arguments", content } };
}

const IF_MATCH: JsonObject = {
  name: "If-Match",
  in: "header",
  description: "The server's `etag`. If the entry has changed since, nothing is changed and the response is 412.",
  schema: { type: "string" },
  example: '"3-9f86d081884c7d65"',
};

function parameter(
  place: "path" | "query",
  name: string,
  schema: unknown,
  { required = false, input = {} }: { readonly required?: boolean; readonly input?: JsonObject } = {},
): JsonObject {
  const { description, ...rest } = asObject(schema);
  return {
    name,
    in: place,
    ...(required ? { required } : {}),
    ...(description === undefined ? {} : { description }),
    schema: rest,
    ...(input[name] === undefined ? {} : { example: input[name] }),
  };
}

interface Body {
  readonly schema: JsonObject;
  readonly example: unknown;
}

function bodyOf(
  from: NonNullable<RestRoute["from"]>,
  members: JsonObject,
  required: readonly string[],
  input: JsonObject,
): Body {
  switch (from) {
    case "updates":
      return { schema: asObject(members["updates"]), example: input["updates"] };
    case "entry": {
      const { serverId: _id, ...sent } = members;
      const wrapped = closedObject({ serverId: members["serverId"], id: members["serverId"], ...sent }, ["config"]);
      const { config, serverId } = input;
      return { schema: { anyOf: [sent["config"], wrapped] }, example: { id: serverId, ...asObject(config) } };
    }
    case "arguments": {
      const { args, ...others } = members;
      const named = { ...asObject(args), description: "Arguments of the tool; `args` is the same." };
      return { schema: closedObject({ arguments: named, args, ...others }, []), example: { arguments: input["args"] } };
    }
    default: {
      const given = Object.keys(members).filter((name) => input[name] !== undefined);
      const example = Object.fromEntries(given.map((name) => [name, input[name]]));
      return { schema: closedObject(members, required), example };
    }
  }
}

function closedObject(properties: JsonObject, required: readonly string[]): JsonObject {
  return {
    type: "object",
    properties,
    ...(required.length === 0 ? {} : { required }),
    additionalProperties: false,
  };
}

/** Routes that are not operations: streams, and the document itself. */
function otherPaths(components: Components): Record<string, Record<string, JsonObject>> {
  return {
    [AUDIT_EXPORT_PATH]: { get: auditExport(components) },
    "/events": { get: eventStream() },
    "/openapi.json": { get: documentItself() },
  };
}

function auditExport(components: Components): JsonObject {
  const { properties } = components.input(OPERATIONS.listAudit.input);
  const filters = Object.entries(asObject(properties)).filter(([name]) => !EXCLUDED_EXPORT_INPUTS.includes(name));
  return {
    operationId: "exportAudit",
    tags: ["Audit"],
    summary: "All matching records, one JSON object per line, the oldest first.",
    description: "Needs the scope `admin`.",
    "x-scope": "admin",
    parameters: filters.map(([name, schema]) => parameter("query", name, schema)),
    responses: {
      200: {
        description: "The lines as they were written.",
        content: { "application/x-ndjson": { schema: { type: "string" } } },
      },
      ...errorRefs(400, 401, 403, 429, 500),
    },
  };
}

function eventStream(): JsonObject {
  const text = { type: "string" };
  return {
    operationId: "events",
    tags: ["Hub"],
    summary: "Events of the hub as server-sent events; the WebSocket sends the same.",
    description: "Needs the scope `read`; events for operators need `admin`.",
    "x-scope": "read",
    parameters: [
      { name: "events", in: "query", description: "Only these, such as `mcp.*,call.finished`.", schema: text },
      { name: "after", in: "query", description: "Continue after the event with this number.", schema: text },
      { name: "epoch", in: "query", description: "The run of the hub that the number belongs to.", schema: text },
      { name: "Last-Event-ID", in: "header", description: "The same, in the form that browsers send.", schema: text },
    ],
    responses: {
      200: {
        description: "First a `hello`, then one event after another until the client disconnects.",
        content: { "text/event-stream": { schema: { type: "string" } } },
      },
      ...errorRefs(400, 401, 403, 429, 500, 503),
    },
  };
}

function documentItself(): JsonObject {
  return {
    operationId: "openapi",
    tags: ["Hub"],
    summary: "This document.",
    security: [],
    responses: {
      200: { description: "OpenAPI 3.1.", content: { "application/json": { schema: { type: "object" } } } },
      ...errorRefs(429, 500),
    },
  };
}

function errorRefs(...statuses: number[]): JsonObject {
  return Object.fromEntries(
    statuses.map((status) => [status, { $ref: `#/components/responses/${responseName(status)}` }]),
  );
}

/** Statuses that HTTP has for what the table has under another one. */
const HTTP_ONLY_STATUSES: Readonly<Record<number, ErrorCode>> = {
  405: "invalid_arguments",
  412: "conflict",
  415: "invalid_arguments",
};

const COMMON_STATUSES = [400, 401, 403, 429, 500];
const CALL_STATUSES = [403, 404, 413, 499, 502, 503, 504];
const SERVER_CHANGES: readonly OperationName[] = ["addServer", "updateServer", "removeServer"];
const EXTRA_STATUSES: Partial<Record<OperationName, readonly number[]>> = {
  callTool: CALL_STATUSES,
  readResource: CALL_STATUSES,
  explainPolicy: [404, 503],
  explainCall: [404, 503],
  listServers: [404],
  listTools: [404],
  listResources: [404],
  listPrompts: [404],
  openSession: [404, 499, 503],
  closeSession: [409],
  clearTaint: [404],
  connectServer: [409],
  disconnectServer: [409],
  scanSkills: [404],
  importSkills: [404, 409],
  removeSkill: [409],
  changePins: [404, 409],
  overrideTool: [404, 409],
  changeConfig: [404, 409],
};

/** The error statuses that an operation can have. */
function errorStatuses({ operation, method, path, from }: RestRoute): number[] {
  const statuses = new Set([...COMMON_STATUSES, ...(EXTRA_STATUSES[operation] ?? [])]);
  if (path.includes("{")) statuses.add(404);
  if (SERVER_CHANGES.includes(operation)) statuses.add(409);
  if (path.endsWith("/{serverId}") && (method === "PATCH" || method === "DELETE")) statuses.add(412);
  if (from !== undefined && from !== "query") for (const status of [413, 415]) statuses.add(status);
  return [...statuses].toSorted((a, b) => a - b);
}

function responseName(status: number): string {
  return `Error${status}`;
}

/** Under `components.responses`. */
function errorResponses(): JsonObject {
  const statuses = new Set([
    ...Object.values(ERROR_TABLE).map(({ http }) => http),
    ...Object.keys(HTTP_ONLY_STATUSES).map(Number),
  ]);
  return Object.fromEntries(
    [...statuses].toSorted((a, b) => a - b).map((status) => [responseName(status), errorResponse(status)]),
  );
}

function errorResponse(status: number): JsonObject {
  const codes = errorCodesOf(status);
  return {
    description: codes.map((code) => `\`${code}\`: ${ERROR_TABLE[code].meaning}`).join(" "),
    content: {
      "application/json": {
        schema: { $ref: `${SCHEMA_PREFIX}Error` },
        examples: Object.fromEntries(codes.map((code) => [code, { value: { error: ERROR_EXAMPLES[code] } }])),
      },
    },
  };
}

function errorCodesOf(status: number): ErrorCode[] {
  const special = HTTP_ONLY_STATUSES[status];
  if (special !== undefined) return [special];
  // The table's keys are its codes.
  return (Object.keys(ERROR_TABLE) as ErrorCode[]).filter((code) => ERROR_TABLE[code].http === status);
}

const ERROR_EXAMPLES: { readonly [Code in ErrorCode]: ErrorObject & { readonly code: Code } } = {
  not_found: { code: "not_found", message: 'There is no server "fils".', hint: "Did you mean files?" },
  denied: {
    code: "denied",
    message: 'This needs the scope "admin".',
    hint: "http.auth says which scopes a token has.",
  },
  blocked: { code: "blocked", message: "The result looks like an attack and is withheld." },
  invalid_arguments: {
    code: "invalid_arguments",
    message: "limit: Too big: expected number to be <=1000.",
    details: { issues: [{ path: "limit", message: "Too big: expected number to be <=1000" }] },
  },
  invalid_config: { code: "invalid_config", message: "files: command or url is missing" },
  rate_limited: {
    code: "rate_limited",
    message: "Too many requests: at most 600 a minute (http.limits.requestsPerMinute).",
    hint: "Try again in 3 s.",
    details: { retryAfterMs: 3000, limit: "http.limits.requestsPerMinute" },
  },
  server_unavailable: { code: "server_unavailable", message: 'The server "files" is not connected: it is failed' },
  timeout: { code: "timeout", message: "files__read_text_file gave no result within 1000 ms." },
  cancelled: { code: "cancelled", message: "The call was cancelled." },
  tool_error: { code: "tool_error", message: "The server answered with an error: Method not found" },
  too_large: { code: "too_large", message: "The result has 12 MiB; allowed are 10 MiB." },
  unauthorized: { code: "unauthorized", message: "This needs a token.", hint: "Send it as `Authorization: Bearer …`." },
  conflict: {
    code: "conflict",
    message: 'The server "files" is in /home/ada/toolcrib.json.',
    hint: "Change it there; the hub reloads it.",
  },
  internal: { code: "internal", message: "An internal error. The hub's log has the details." },
};

const SCHEMA_PREFIX = "#/components/schemas/";

/** JSON Schemas of the contract's zod schemas. Those with an id are written once and referred to. */
class Components {
  readonly schemas: Record<string, JsonObject> = {};

  input(schema: z.ZodType): JsonObject {
    return this.#convert(schema, "input");
  }

  /** The schema of an output: closed, unless the schema says otherwise. */
  output(schema: z.ZodType): JsonObject {
    return this.#convert(schema, "output");
  }

  #convert(schema: z.ZodType, io: "input" | "output"): JsonObject {
    // A JSON Schema is a JSON object.
    const whole = z.toJSONSchema(schema, { io, target: "draft-2020-12" }) as JsonObject;
    const { $schema: _dialect, $defs: definitions, ...own } = whole;
    for (const [id, definition] of Object.entries(isJsonObject(definitions) ? definitions : {})) {
      this.#add(id, withReferences(definition));
    }
    return asObject(withReferences(own));
  }

  #add(id: string, definition: unknown): void {
    const { id: _id, ...schema } = asObject(definition);
    const known = this.schemas[id];
    // A schema with different input and output forms would need two names.
    if (known !== undefined && !isDeepStrictEqual(known, schema)) throw new Error(`Two schemas have the id ${id}.`);
    this.schemas[id] = schema;
  }
}

/** Properties of the contract are never called `$ref`. Bounds of safe integers are left out. */
function withReferences(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withReferences);
  if (!isJsonObject(value)) return value;
  const isImplied = (member: unknown): boolean =>
    member === Number.MAX_SAFE_INTEGER || member === Number.MIN_SAFE_INTEGER;
  const members = Object.entries(value).filter(([, member]) => !isImplied(member));
  return Object.fromEntries(
    members.map(([key, member]) => [
      key,
      key === "$ref" && typeof member === "string"
        ? member.replace(/^#\/\$defs\//, SCHEMA_PREFIX)
        : withReferences(member),
    ]),
  );
}

function asObject(value: unknown): JsonObject {
  return isJsonObject(value) ? value : {};
}
