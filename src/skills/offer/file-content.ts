/** A file of a skill as the contents of a resource. */
import type { ResourceContents } from "../../model/protocol.ts";

const TYPES: Readonly<Record<string, string>> = {
  css: "text/css",
  csv: "text/csv",
  gif: "image/gif",
  html: "text/html",
  jpeg: "image/jpeg",
  jpg: "image/jpeg",
  js: "text/javascript",
  json: "application/json",
  md: "text/markdown",
  mjs: "text/javascript",
  pdf: "application/pdf",
  png: "image/png",
  py: "text/x-python",
  sh: "application/x-sh",
  svg: "image/svg+xml",
  toml: "application/toml",
  ts: "text/x-typescript",
  txt: "text/plain",
  webp: "image/webp",
  xml: "application/xml",
  yaml: "application/yaml",
  yml: "application/yaml",
  zip: "application/zip",
};

/** Undefined where the name does not tell. */
export function mimeTypeOf(path: string): string | undefined {
  const dot = path.lastIndexOf(".");
  return dot === -1 ? undefined : TYPES[path.slice(dot + 1).toLowerCase()];
}

/** Text where the bytes are text and come back the same, else a blob. */
export function contentsOf(uri: string, path: string, bytes: Uint8Array): ResourceContents {
  const mimeType = mimeTypeOf(path);
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const text = asText(buffer);
  if (text === undefined) {
    return { uri, mimeType: mimeType ?? "application/octet-stream", blob: buffer.toString("base64") };
  }
  return { uri, mimeType: mimeType ?? "text/plain", text };
}

function asText(bytes: Buffer): string | undefined {
  if (bytes.includes(0)) return undefined;
  const text = bytes.toString("utf8");
  return Buffer.from(text, "utf8").equals(bytes) ? text : undefined;
}
