/** Routes that are no operations: streams, and the document itself. */
import { OPERATIONS } from "../../../../contract/operations.ts";
import { isJsonObject, type JsonObject } from "../../../../model/json.ts";
import { NOT_HERE } from "../rest/audit-export.ts";
import type { Components } from "./components.ts";
import { responseName } from "./errors.ts";

export function otherPaths(components: Components): Record<string, Record<string, JsonObject>> {
  return {
    "/audit/export": { get: auditExport(components) },
    "/events": { get: eventStream() },
    "/openapi.json": { get: documentItself() },
  };
}

function auditExport(components: Components): JsonObject {
  const { properties } = components.input(OPERATIONS.listAudit.input);
  const filters = Object.entries(isJsonObject(properties) ? properties : {}).filter(
    ([name]) => !NOT_HERE.includes(name),
  );
  return {
    operationId: "exportAudit",
    tags: ["Audit"],
    summary: "All records that fit, one JSON object to a line, the oldest first.",
    description: "Needs the scope `admin`.",
    "x-scope": "admin",
    parameters: filters.map(([name, schema]) => {
      const { description, ...rest } = isJsonObject(schema) ? schema : {};
      return { name, in: "query", description, schema: rest };
    }),
    responses: {
      200: {
        description: "Lines exactly as they were written.",
        content: { "application/x-ndjson": { schema: { type: "string" } } },
      },
      ...errors(400, 401, 403, 429, 500),
    },
  };
}

function eventStream(): JsonObject {
  const text = { type: "string" };
  return {
    operationId: "events",
    tags: ["Hub"],
    summary: "What happens in the hub, as server-sent events; the WebSocket gives the same.",
    description: "Needs the scope `read`; events for operators need `admin`.",
    "x-scope": "read",
    parameters: [
      { name: "events", in: "query", description: "Only these, such as `mcp.*,call.finished`.", schema: text },
      { name: "after", in: "query", description: "Go on after the event of this number.", schema: text },
      { name: "epoch", in: "query", description: "The run of the hub that the number belongs to.", schema: text },
      { name: "Last-Event-ID", in: "header", description: "The same, as browsers send it.", schema: text },
    ],
    responses: {
      200: {
        description: "A `hello` first, then one event after the other until the client leaves.",
        content: { "text/event-stream": { schema: { type: "string" } } },
      },
      ...errors(400, 401, 403, 429, 500, 503),
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
      ...errors(429, 500),
    },
  };
}

function errors(...statuses: number[]): JsonObject {
  return Object.fromEntries(
    statuses.map((status) => [status, { $ref: `#/components/responses/${responseName(status)}` }]),
  );
}
