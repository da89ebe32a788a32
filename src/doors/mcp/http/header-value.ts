/** The values of headers; those of MCP 2026-07-28 are plain, or UTF-8 in base64 between marks. */
const PLAIN = /^[\x20-\x7e\t]*$/;
const MARKED = /^=\?base64\?(.*)\?=$/;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** Undefined if it holds characters that it must not hold. */
export function decodeHeaderValue(value: string): string | undefined {
  const encoded = MARKED.exec(value)?.[1];
  if (encoded === undefined) return PLAIN.test(value) ? value : undefined;
  if (!BASE64.test(encoded)) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Buffer.from(encoded, "base64"));
  } catch {
    return undefined;
  }
}

/** A header that a client sent twice is joined by a comma, and so no value that is known. */
export function headerOf(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(", ") : value;
}
