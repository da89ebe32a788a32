/** Images that a provider takes. One that it does not would make it refuse the whole conversation, in every later step too. */
import { isJsonObject } from "../../model/json.ts";
import type { ContentBlock } from "../../model/protocol.ts";
import type { Protocol } from "./providers.ts";

export interface Image {
  readonly mediaType: string;
  /** Base64. */
  readonly data: string;
}

const TAKEN = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

/** How the four begin in base64. */
const BEGINNINGS: readonly (readonly [string, string])[] = [
  ["iVBORw0KGgo", "image/png"],
  ["/9j/", "image/jpeg"],
  ["R0lGOD", "image/gif"],
  ["UklGR", "image/webp"],
];

const MEGABYTE = 1024 * 1024;

/** The image of a block, also of an embedded resource; undefined for what is none, or none that can be sent. */
export function imageOf(block: ContentBlock, protocol: Protocol): Image | undefined {
  const found = rawImage(block);
  if (found === undefined || !/^[A-Za-z0-9+/]+={0,2}$/.test(found.data)) return undefined;
  if (found.data.length * 0.75 > (protocol === "anthropic" ? 5 : 15) * MEGABYTE) return undefined;
  // The type is what the image is, not what its server calls it: Anthropic refuses a JPEG that is called a PNG.
  const real = BEGINNINGS.find(([beginning]) => found.data.startsWith(beginning))?.[1] ?? found.mediaType;
  return TAKEN.has(real) ? { mediaType: real, data: found.data } : undefined;
}

function rawImage(block: ContentBlock): Image | undefined {
  if (block.type === "image") return image(block["data"], block["mimeType"]);
  if (block.type !== "resource" || !isJsonObject(block["resource"])) return undefined;
  const { blob, mimeType } = block["resource"];
  return typeof mimeType === "string" && mimeType.startsWith("image/") ? image(blob, mimeType) : undefined;
}

function image(data: unknown, mediaType: unknown): Image | undefined {
  if (typeof data !== "string" || typeof mediaType !== "string") return undefined;
  return { data: data.replaceAll(/\s+/g, ""), mediaType: mediaType.toLowerCase() };
}
