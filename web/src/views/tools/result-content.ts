/** The blocks of a result, told apart by what can be shown of them. */
import { isObject } from "./schema.ts";

type Block = Readonly<Record<string, unknown>>;

export type Shown =
  | { readonly kind: "text"; readonly text: string; readonly json: unknown }
  | { readonly kind: "image"; readonly source: string; readonly label: string }
  | { readonly kind: "audio"; readonly source: string; readonly label: string }
  | { readonly kind: "link"; readonly uri: string; readonly name: string; readonly description: string | undefined }
  | { readonly kind: "resource"; readonly uri: string; readonly shown: Shown }
  /** Bytes that have no look of their own. */
  | { readonly kind: "bytes"; readonly type: string; readonly size: number }
  | { readonly kind: "unknown"; readonly type: string; readonly value: Block };

const MEDIA_TYPE = /^[a-z]+\/[a-z0-9][a-z0-9.+-]*$/i;
const BASE64 = /^[A-Za-z0-9+/\s]*={0,2}\s*$/;

export function shownOf(block: Block): Shown {
  const { type, text, data, mimeType, uri, resource } = block;
  if (type === "text" && typeof text === "string") return textShown(text);
  if (type === "image" || type === "audio")
    return mediaShown(type, data, mimeType) ?? { kind: "unknown", type, value: block };
  if (type === "resource_link" && typeof uri === "string")
    return {
      kind: "link",
      uri,
      name: firstText(block["title"], block["name"]) ?? uri,
      description: firstText(block["description"]),
    };
  if (type === "resource" && isObject(resource)) return resourceShown(resource);
  return { kind: "unknown", type: String(type), value: block };
}

/** Servers repeat their structured content as text for clients that do not know it: that is shown once. */
export function blocksOf({
  content,
  structuredContent,
}: {
  readonly content: readonly Block[];
  readonly structuredContent?: unknown;
}): Shown[] {
  const structured = structuredContent === undefined ? undefined : JSON.stringify(structuredContent);
  return content
    .map(shownOf)
    .filter((shown) => shown.kind !== "text" || structured === undefined || JSON.stringify(shown.json) !== structured);
}

/** One entry of what reading a resource gives, or of an embedded one. */
export function resourceShown(resource: Block): Shown {
  const { uri, text, blob, mimeType } = resource;
  const address = typeof uri === "string" ? uri : "";
  if (typeof text === "string") return { kind: "resource", uri: address, shown: textShown(text) };
  return { kind: "resource", uri: address, shown: blobShown(blob, mimeType) ?? unknown(resource, mimeType) };
}

function unknown(value: Block, type: unknown): Shown {
  return { kind: "unknown", type: String(type), value };
}

function blobShown(blob: unknown, mimeType: unknown): Shown | undefined {
  const type = typeof mimeType === "string" ? mimeType : "application/octet-stream";
  if (typeof blob !== "string" || !BASE64.test(blob)) return undefined;
  if (type.startsWith("image/")) return mediaShown("image", blob, type);
  if (type.startsWith("audio/")) return mediaShown("audio", blob, type);
  const bytes = bytesOf(blob);
  if (bytes === undefined) return undefined;
  if (/^text\/|[/+](?:json|xml|yaml)$/.test(type)) return textShown(new TextDecoder().decode(bytes));
  return { kind: "bytes", type, size: bytes.length };
}

function bytesOf(base64: string): Uint8Array | undefined {
  try {
    return Uint8Array.from(atob(base64), (each) => each.charCodeAt(0));
  } catch {
    // Cut off in the middle.
    return undefined;
  }
}

function textShown(text: string): Shown {
  return { kind: "text", text, json: jsonOf(text) };
}

/** Only what is an object or a list gains by being shown as a tree. */
function jsonOf(text: string): unknown {
  if (!/^\s*[[{]/.test(text)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function mediaShown(kind: "image" | "audio", data: unknown, mimeType: unknown): Shown | undefined {
  if (typeof data !== "string" || typeof mimeType !== "string") return undefined;
  // It becomes part of an address.
  if (!MEDIA_TYPE.test(mimeType) || !mimeType.startsWith(`${kind}/`) || !BASE64.test(data)) return undefined;
  return { kind, source: `data:${mimeType};base64,${data}`, label: mimeType };
}

function firstText(...values: readonly unknown[]): string | undefined {
  return values.find((value): value is string => typeof value === "string" && value !== "");
}

export interface Mark {
  readonly wrapped: boolean;
  readonly findings: readonly { readonly code: string; readonly severity: string }[];
}

/** The verdict of the guard on the result. */
export function markOf(result: Block): Mark | undefined {
  const meta = result["_meta"];
  const mark = isObject(meta) ? meta["dev.toolcrib/untrusted"] : undefined;
  if (!isObject(mark)) return undefined;
  const findings = Array.isArray(mark["findings"]) ? mark["findings"].filter(isObject) : [];
  return {
    wrapped: mark["wrapped"] === true,
    findings: findings.map(({ code, severity }) => ({ code: String(code), severity: String(severity) })),
  };
}
