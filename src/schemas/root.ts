import { ToolcribError } from "../model/errors.ts";
import type { JsonObject } from "../model/json.ts";
import type { Notes } from "./notes.ts";
import { flattenObject } from "./union.ts";

/** Providers refuse these at the root, with the whole request. */
const FORBIDDEN = ["enum", "const", "not"] as const;

/** An inlined schema with a root that every provider takes: a plain object with properties and without unions. */
export function plainRoot(schema: JsonObject, notes: Notes): JsonObject {
  const flat = flattenObject(schema, notes, "");
  if (flat === undefined) {
    throw new ToolcribError(
      "invalid_arguments",
      "The schema allows no object, and the arguments of a tool are always one.",
      {
        details: { type: schema["type"] },
      },
    );
  }
  const { type: _, properties, ...rest } = flat;
  for (const keyword of FORBIDDEN) {
    if (!(keyword in rest)) continue;
    delete rest[keyword];
    notes.add(`${keyword} is dropped at the root`, "");
  }
  return { type: "object", properties: properties ?? {}, ...rest };
}
