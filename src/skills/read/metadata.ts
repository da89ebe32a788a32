/** `metadata` in its many forms: a mapping, JSON or JSON5 as text, and a vendor's block inside in the same forms. */
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import { Fields } from "./fields.ts";
import type { Places } from "./frontmatter.ts";
import { parseJson5 } from "./json5-text.ts";
import { type Notes, shown } from "./notes.ts";

/** The present name first: it wins where a file has several for the sake of old readers. */
const VENDORS = ["openclaw", "clawdbot", "clawdis", "moltbot"] as const;

/** @returns The mapping, put into `frontmatter` too where it had to be taken out of text. */
export function readMetadata(fields: Fields, frontmatter: JsonObject, places: Places): JsonObject {
  const value = fields.get("metadata");
  if (value === undefined || value === null) return {};
  const [key = "metadata"] = fields.pathOf("metadata");
  if (isJsonObject(value)) {
    const meant = hasOddKeys(value) ? parseObject(places.textOf([key]) ?? "") : undefined;
    if (meant === undefined) return value;
    fields.warn(
      "metadata",
      "METADATA_JSON5",
      "metadata is JSON5, which YAML reads as something else; it is read as JSON5.",
    );
    frontmatter[key] = meant;
    return meant;
  }
  const parsed = typeof value === "string" ? parseObject(value) : undefined;
  if (parsed !== undefined) {
    fields.warn("metadata", "METADATA_AS_TEXT", "metadata is JSON inside a text; it should be a mapping.");
    frontmatter[key] = parsed;
    return parsed;
  }
  if (Array.isArray(value) && value.every(isJsonObject)) {
    const merged: JsonObject = Object.fromEntries(value.flatMap((item) => Object.entries(item)));
    fields.warn("metadata", "WRONG_TYPE", "metadata must be a mapping, not a list; the items are joined.");
    frontmatter[key] = merged;
    return merged;
  }
  fields.warn("metadata", "METADATA_UNREADABLE", `metadata must be a mapping; "${shown(value)}" is left out.`);
  return {};
}

/** The block of OpenClaw, under whichever of its names. */
export function vendorBlock(metadata: JsonObject, fields: Fields, places: Places, notes: Notes): Fields | undefined {
  for (const vendor of VENDORS) {
    const value = metadata[vendor];
    if (value === undefined || value === null) continue;
    const path = [...fields.pathOf("metadata"), vendor];
    if (isJsonObject(value)) return new Fields(value, path, places, notes);
    // The standard allows only text in metadata, so a block as text is right and no repair.
    const parsed = typeof value === "string" ? parseObject(value) : undefined;
    if (parsed !== undefined) return new Fields(parsed, path, places, notes);
    const line = places.lineOf(path);
    notes.add("VENDOR_BLOCK_UNREADABLE", `metadata.${vendor} must be a mapping; "${shown(value)}" is left out.`, line);
  }
  return undefined;
}

/** To YAML a comment of JSON5 is part of the next key, and so is `a:"b"` without a blank. */
function hasOddKeys(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  return Object.entries(value).some(([key, item]) => /^\/[/*]|:["'[{\w]/.test(key) || hasOddKeys(item));
}

function parseObject(text: string): JsonObject | undefined {
  const value = parseJson5(text);
  return isJsonObject(value) ? value : undefined;
}
