/** The audit log as lines, as many as there are: nothing is gathered in memory, and a slow reader slows it down. */
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { OPERATIONS } from "../../../contract/operations.ts";
import type { HttpExchange } from "../http-exchange.ts";
import { refuseMethod } from "../status-routes.ts";
import { checkInput, invalidInput, type OperatorAudit } from "./operation-handler.ts";
import { readQuery } from "./rest-input.ts";

export const EXPORT_PATH = "/audit/export";
/** Inputs of the list that a whole log has no use for. */
export const EXCLUDED_EXPORT_INPUTS: readonly string[] = ["limit", "cursor", "order"];
const EXPORT_SCOPE = OPERATIONS.listAudit.scope;

export async function exportAudit(exchange: HttpExchange, audit: OperatorAudit): Promise<void> {
  const { request, response, caller, query } = exchange;
  if (!caller.scopes.has(EXPORT_SCOPE)) {
    exchange.refuseScope(EXPORT_SCOPE);
    return;
  }
  if (request.method !== "GET" && request.method !== "HEAD") {
    refuseMethod(exchange, ["GET", "HEAD"]);
    return;
  }
  const given = readQuery(query);
  for (const key of EXCLUDED_EXPORT_INPUTS) {
    if (!Object.hasOwn(given, key)) continue;
    throw invalidInput([{ path: key, message: "does not hold here: all are given, the oldest first" }]);
  }
  const lines = audit.exportLines(checkInput("listAudit", given))[Symbol.asyncIterator]();
  // What is wrong from the start is answered as an error; afterwards all that is left is to hang up.
  const first = await lines.next();
  response.writeHead(200, {
    "content-type": "application/x-ndjson",
    "content-disposition": 'attachment; filename="toolcrib-audit.jsonl"',
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
  });
  if (request.method === "HEAD") {
    response.end();
    await lines.return?.();
    return;
  }
  await pipeline(Readable.from(exportText(first, lines), { objectMode: false }), response).catch((error: unknown) => {
    // Whoever leaves early is no fault of ours.
    if (!response.destroyed) throw error;
  });
}

async function* exportText(first: IteratorResult<string>, rest: AsyncIterator<string>): AsyncGenerator<string> {
  try {
    for (let next = first; next.done !== true; next = await rest.next()) {
      yield next.value.endsWith("\n") ? next.value : `${next.value}\n`;
    }
  } finally {
    await rest.return?.();
  }
}
