/** A thread that compiles schemas and checks values against them. Whoever started it ends it when it takes too long. */
import { parentPort } from "node:worker_threads";
import type { JsonObject } from "../model/json.ts";
import { compileSchema, prepareCompiler, type Problems, problemsOf } from "./validator.ts";

export interface SchemaJob {
  readonly key: number;
  /** Only the first time. */
  readonly schema?: JsonObject;
  /** Absent if the schema alone is to be looked at. */
  readonly value?: JsonObject;
}

export type SchemaAnswer =
  | { readonly ok: true; readonly problems?: Problems }
  /** The schema is not one. */
  | { readonly ok: false; readonly message: string };

const schemas = new Map<number, JsonObject>();

function answerTo({ key, schema: given, value }: SchemaJob): SchemaAnswer {
  try {
    if (given !== undefined) schemas.set(key, given);
    const schema = schemas.get(key);
    if (schema === undefined) return { ok: false, message: "it was not sent" };
    const validate = compileSchema(schema);
    return value === undefined ? { ok: true } : { ok: true, problems: problemsOf(validate, value) };
  } catch (error) {
    return { ok: false, message: error instanceof Error ? error.message : String(error) };
  }
}

const port = parentPort;
if (port !== null) {
  prepareCompiler();
  port.on("message", (job: SchemaJob) => port.postMessage(answerTo(job)));
  port.postMessage("ready");
}
