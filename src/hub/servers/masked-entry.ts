import type { JsonObject } from "../../model/json.ts";
import { MASK } from "../../secrets/mask.ts";
import { plainCredentials, replaceCredentials } from "../../secrets/plain-credentials.ts";
import type { Redactor } from "../../secrets/redactor.ts";

/** An entry as people see it: references as they are written, plain secrets masked. */
export function maskedEntry(entry: JsonObject, redactor: Redactor): JsonObject {
  return redactor.maskAll(replaceCredentials(entry, plainCredentials(entry), () => MASK));
}
