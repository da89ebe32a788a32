/**
 * Limits for untrusted JSON Schemas. Processing one (a validator, a provider's form, a fingerprint, an index) costs
 * far more than reading it. Tools of the reference servers have up to 30 values in half a kilobyte; this leaves room for those
 * that are generated from large descriptions of APIs.
 */
import { formatBytes } from "../model/content.ts";

export const MAX_SCHEMA_BYTES = 512 * 1024;
/** Objects, lists and plain values, each counted once. */
export const MAX_SCHEMA_NODES = 20_000;
export const MAX_SCHEMA_DEPTH = 100;
/** Nothing can stop a regular expression from being compiled, not even ending its thread: at this length it takes a second. */
export const MAX_PATTERN_LENGTH = 8192;
/** A Unicode property stands for hundreds of ranges. */
const UNICODE_PROPERTY_FACTOR = 4;

export interface SchemaSize {
  readonly nodes: number;
  /** Characters of all regular expressions, with a factor for those that are slow to compile. */
  readonly patterns: number;
  /** Why it is too large, as the rest of a sentence that begins with its name. */
  readonly fault?: string;
}

/** Linear, and stops at the first bound that is passed. */
export function schemaSize(schema: object): SchemaSize {
  let nodes = 0;
  let length = 0;
  let patterns = 0;
  // An explicit stack: deep nesting would overflow a recursive walk.
  const pending: { readonly value: unknown; readonly depth: number }[] = [{ value: schema, depth: 0 }];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const { value, depth } = next;
    nodes += 1;
    if (nodes > MAX_SCHEMA_NODES) {
      return { nodes, patterns, fault: `has more than ${MAX_SCHEMA_NODES} values` };
    }
    if (typeof value === "string") length += value.length;
    if (typeof value !== "object" || value === null) continue;
    if (depth >= MAX_SCHEMA_DEPTH) {
      return { nodes, patterns, fault: `is nested more than ${MAX_SCHEMA_DEPTH} levels deep` };
    }
    const isList = Array.isArray(value);
    for (const [key, member] of Object.entries(value)) {
      if (!isList) {
        length += key.length;
        for (const pattern of patternsOf(key, member)) {
          if (pattern.length > MAX_PATTERN_LENGTH) {
            return { nodes, patterns, fault: `has a pattern of more than ${MAX_PATTERN_LENGTH} characters` };
          }
          patterns += pattern.length * (/\\p/i.test(pattern) ? UNICODE_PROPERTY_FACTOR : 1);
        }
      }
      pending.push({ value: member, depth: depth + 1 });
    }
    if (length > MAX_SCHEMA_BYTES) break;
  }
  // Texts alone are counted above, so that what is far too large is not written out to be measured.
  const isLarge = length > MAX_SCHEMA_BYTES || Buffer.byteLength(JSON.stringify(schema)) > MAX_SCHEMA_BYTES;
  return isLarge ? { nodes, patterns, fault: `is larger than ${formatBytes(MAX_SCHEMA_BYTES)}` } : { nodes, patterns };
}

/** By name alone, as a `$ref` makes a schema of whatever it points at. */
function patternsOf(keyword: string, value: unknown): string[] {
  if (keyword === "pattern" && typeof value === "string") return [value];
  return keyword === "patternProperties" && typeof value === "object" && value !== null ? Object.keys(value) : [];
}
