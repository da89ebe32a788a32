/** Text that a result carries in base64: whoever reads the resource reads it as text, so it is looked at as text. */
import { isUtf8 } from "node:buffer";
import type { JsonObject } from "../model/json.ts";

const TEXT_TYPE =
  /^\s*(?:text\/|(?:application|image|model)\/(?:[\w.-]+\+)?(?:json|xml|yaml)\b|application\/(?:x-)?(?:javascript|ecmascript|typescript|ndjson|jsonl|yaml|toml|sh|sql|httpd-php)\b|application\/(?:xhtml|graphql|rtf|ld|x-www-form-urlencoded))/i;
const MEDIA_TYPE = /^\s*(?:image|audio|video|font)\//i;
const CHARSET = /;\s*charset\s*=\s*"?([\w.:-]+)"?/i;
/** Enough to see that an image is one. */
const LOOKED_AT = 4096;

/** Keys that hold base64. */
const KEYS = ["blob", "data"] as const;

/** The texts in the base64 of one object, by their keys. What is broken, or no text, is left out. */
export function textBlobs(holder: JsonObject): [key: string, text: string][] {
  return KEYS.flatMap((key) => {
    const base64 = holder[key];
    const text = typeof base64 === "string" ? decoded(base64, holder["mimeType"], key) : undefined;
    return text === undefined || text === "" ? [] : [[key, text] as [string, string]];
  });
}

/** The object with this text in place of the one that it held. */
export function withTextBlob(holder: JsonObject, key: string, text: string): JsonObject {
  const { mimeType } = holder;
  const type = typeof mimeType === "string" ? { mimeType: mimeType.replace(CHARSET, ";charset=utf-8") } : {};
  return { ...holder, ...type, [key]: Buffer.from(text).toString("base64") };
}

function decoded(base64: string, mimeType: unknown, key: (typeof KEYS)[number]): string | undefined {
  if (typeof mimeType === "string" && TEXT_TYPE.test(mimeType)) {
    return decodedAs(CHARSET.exec(mimeType)?.[1], Buffer.from(base64, "base64"));
  }
  // `data` is also what programs call anything, and media are shown as what they are said to be.
  if (typeof mimeType === "string" ? MEDIA_TYPE.test(mimeType) : key === "data") return undefined;
  // Whatever else it is said to be: bytes that are text can be read as text.
  const bytes = isText(Buffer.from(base64.slice(0, LOOKED_AT), "base64"), true)
    ? Buffer.from(base64, "base64")
    : undefined;
  return bytes !== undefined && isText(bytes, false) ? bytes.toString("utf8") : undefined;
}

function isText(bytes: Buffer, isCut: boolean): boolean {
  if (bytes.includes(0)) return false;
  // A character may have been cut in its middle.
  return isUtf8(bytes) || (isCut && [1, 2, 3].some((cut) => isUtf8(bytes.subarray(0, -cut))));
}

function decodedAs(charset: string | undefined, bytes: Buffer): string {
  try {
    return new TextDecoder(charset).decode(bytes);
  } catch {
    return bytes.toString("utf8");
  }
}
