import { createHash } from "node:crypto";
import { canonicalJson } from "../model/canonical-json.ts";

/** SHA-256 (hex) of the canonical JSON: equal for definitions that differ only in the order of their keys. */
export function fingerprint(definition: object): string {
  return createHash("sha256").update(canonicalJson(definition)).digest("hex");
}
