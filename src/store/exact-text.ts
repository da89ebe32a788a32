/**
 * Text that a database cannot hold as it is: PostgreSQL refuses U+0000, and lone surrogates have no UTF-8. Servers name
 * their tools as they like, so such text is written as JSON behind a marker, and read back exactly.
 */
const MARKER = "\u0001";

export function toStored(text: string): string {
  return !text.includes("\0") && !text.startsWith(MARKER) && text.isWellFormed()
    ? text
    : MARKER + JSON.stringify(text).replaceAll("\0", "\\u0000");
}

export function fromStored(text: string): string {
  if (!text.startsWith(MARKER)) return text;
  // Only `toStored` writes the marker.
  return JSON.parse(text.slice(MARKER.length)) as string;
}
