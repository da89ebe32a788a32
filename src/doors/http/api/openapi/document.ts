/** The OpenAPI 3.1 document: the contract's table of operations and routes, written the way other programs read it. */
import { ErrorAnswerSchema } from "../../../../contract/error.ts";
import { EXAMPLES } from "../../../../contract/examples.ts";
import { OPERATIONS } from "../../../../contract/operations.ts";
import { API_PATH, REST_ROUTES, type RestRoute } from "../../../../contract/rest.ts";
import type { JsonObject } from "../../../../model/json.ts";
import { Components } from "./components.ts";
import { errorResponses, errorStatuses, responseName } from "./errors.ts";
import { otherPaths } from "./other-paths.ts";
import { requestParts } from "./request-parts.ts";

export type OpenApiDocument = JsonObject & {
  readonly paths: Readonly<Record<string, Readonly<Record<string, JsonObject>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, JsonObject>>;
    readonly responses: JsonObject;
  } & JsonObject;
};

const ABOUT = `What can be asked of a running Toolcrib hub. Every error has the one form of \`Error\`, whatever its status.

Tokens have scopes: \`read\` lists and reads, \`call\` calls tools as well, \`approve\` answers for calls of others that wait, and \`admin\` does everything. Each operation says
what it needs. A caller that is bound to a role sees what that role sees, and nothing else is there for it.

Lists come in pages: pass \`nextCursor\` of one answer as \`cursor\` of the next request. A method that a path does not have is
answered with 405 and \`Allow\`. \`GET\` takes \`If-None-Match\`, and \`HEAD\` works wherever \`GET\` does.`;

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
    servers: [{ url: API_PATH, description: "This hub." }],
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
          description: "What the login answered. The cookie counts only together with it.",
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
        description: status === 201 ? "It was made." : "Done.",
        ...headersOf(given),
        content: { "application/json": { schema: components.output(output), example: EXAMPLES[name].output } },
      },
      ...(method === "GET" && name !== "getServer" ? { 304: { description: "Nothing is other than before." } } : {}),
      ...Object.fromEntries(
        errorStatuses(given).map((each) => [each, { $ref: `#/components/responses/${responseName(each)}` }]),
      ),
    },
  };
}

/** Two routes lead to the tools. */
function nameOf({ operation, path }: RestRoute): { readonly operationId: string; readonly summary: string } {
  if (path !== "/mcp/tools/{serverId}") return { operationId: operation, summary: OPERATIONS[operation].summary };
  return { operationId: "listToolsOfServer", summary: "Tools of one server that the caller sees." };
}

const ETAG = { description: "Of the answer, or of a single server's entry.", schema: { type: "string" } };
const LOCATION = { description: "Where it is.", schema: { type: "string" } };

function headersOf({ operation, method, status }: RestRoute): JsonObject {
  const isTagged = method === "GET" || operation === "addServer" || operation === "updateServer";
  if (!isTagged && status !== 201) return {};
  return { headers: { ...(isTagged ? { ETag: ETAG } : {}), ...(status === 201 ? { Location: LOCATION } : {}) } };
}
