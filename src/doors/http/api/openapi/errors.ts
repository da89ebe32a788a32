/** Which errors an operation can end with, and how they stand in the document. */
import type { OperationName } from "../../../../contract/operations.ts";
import type { RestRoute } from "../../../../contract/rest.ts";
import { type ErrorCode, type ErrorObject, ERROR_TABLE } from "../../../../model/errors.ts";
import type { JsonObject } from "../../../../model/json.ts";
import { reference } from "./components.ts";

/** Statuses that HTTP has for what the table has under another one. */
const OF_HTTP: Readonly<Record<number, ErrorCode>> = {
  405: "invalid_arguments",
  412: "conflict",
  415: "invalid_arguments",
};

const ALWAYS = [400, 401, 403, 429, 500];
const OF_CALLS = [403, 404, 413, 499, 502, 503, 504];
const CHANGES_SERVER: readonly OperationName[] = ["addServer", "updateServer", "removeServer"];
const MORE: Partial<Record<OperationName, readonly number[]>> = {
  callTool: OF_CALLS,
  readResource: OF_CALLS,
  explainPolicy: [404, 503],
  listServers: [404],
  listTools: [404],
  listResources: [404],
  listPrompts: [404],
  openSession: [404, 499, 503],
  closeSession: [409],
  connectServer: [409],
  scanSkills: [404],
  importSkills: [404, 409],
  removeSkill: [409],
  changePins: [404, 409],
};

export function errorStatuses({ operation, method, path, from }: RestRoute): number[] {
  const statuses = new Set([...ALWAYS, ...(MORE[operation] ?? [])]);
  if (path.includes("{")) statuses.add(404);
  if (CHANGES_SERVER.includes(operation)) statuses.add(409);
  if (path.endsWith("/{serverId}") && (method === "PATCH" || method === "DELETE")) statuses.add(412);
  if (from !== undefined && from !== "query") for (const status of [413, 415]) statuses.add(status);
  return [...statuses].toSorted((a, b) => a - b);
}

export function responseName(status: number): string {
  return `Error${status}`;
}

/** Under `components.responses`. */
export function errorResponses(): JsonObject {
  const statuses = new Set([
    ...Object.values(ERROR_TABLE).map(({ http }) => http),
    ...Object.keys(OF_HTTP).map(Number),
  ]);
  return Object.fromEntries(
    [...statuses].toSorted((a, b) => a - b).map((status) => [responseName(status), errorResponse(status)]),
  );
}

function errorResponse(status: number): JsonObject {
  const codes = codesOf(status);
  return {
    description: codes.map((code) => `\`${code}\`: ${ERROR_TABLE[code].meaning}`).join(" "),
    content: {
      "application/json": {
        schema: reference("Error"),
        examples: Object.fromEntries(codes.map((code) => [code, { value: { error: EXAMPLES[code] } }])),
      },
    },
  };
}

function codesOf(status: number): ErrorCode[] {
  const special = OF_HTTP[status];
  if (special !== undefined) return [special];
  // The table's keys are its codes.
  return (Object.keys(ERROR_TABLE) as ErrorCode[]).filter((code) => ERROR_TABLE[code].http === status);
}

const EXAMPLES: { readonly [Code in ErrorCode]: ErrorObject & { readonly code: Code } } = {
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
    message: "Too many requests. Try again in 3 s.",
    details: { retryAfterMs: 3000 },
  },
  server_unavailable: { code: "server_unavailable", message: 'The server "files" is not connected: it is failed' },
  timeout: { code: "timeout", message: "files__read_text_file gave no result within 1000 ms." },
  cancelled: { code: "cancelled", message: "The call was cancelled." },
  tool_error: { code: "tool_error", message: "The server answered with an error: Method not found" },
  too_large: { code: "too_large", message: "The result has 12 MiB; allowed are 10 MiB." },
  unauthorized: { code: "unauthorized", message: "This needs a token.", hint: "Send it as `Authorization: Bearer …`." },
  conflict: {
    code: "conflict",
    message: 'The server "files" stands in /home/ada/toolcrib.json.',
    hint: "Change it there; the hub takes it up.",
  },
  internal: { code: "internal", message: "A fault in Toolcrib. The hub's log says more." },
};
