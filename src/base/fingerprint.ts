import { hash } from "node:crypto";
import { canonicalJson } from "../model/json.ts";

/** SHA-256 (hex) of the canonical JSON: equal for definitions that differ only in the order of their keys. */
export function fingerprint(definition: object): string {
  return hash("sha256", canonicalJson(definition));
}
