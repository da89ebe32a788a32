/** Bytes to text: byte order marks, UTF-16 and broken UTF-8 are told of and read as far as they can be. */
import { isUtf8 } from "node:buffer";
import type { Notes } from "./notes.ts";

const lenient = new TextDecoder("utf-8", { ignoreBOM: true });

export function decodeText(bytes: Uint8Array, notes: Notes): string {
  const [first, second] = bytes;
  if (first === 0xff && second === 0xfe) return decodeUtf16(bytes, "utf-16le", notes);
  if (first === 0xfe && second === 0xff) return decodeUtf16(bytes, "utf-16be", notes);
  const text = lenient.decode(bytes);
  const marked = text.startsWith("\uFEFF");
  if (marked) notes.add("BYTE_ORDER_MARK", "The file starts with a byte order mark, which is left out.", 1);
  const bad = text.indexOf("\uFFFD");
  // The character may also stand there rightly.
  if (bad !== -1 && !isUtf8(bytes)) {
    const line = lineAt(text, bad);
    notes.add("BAD_UTF8", "The file is not valid UTF-8; what cannot be read stands as U+FFFD.", line);
  }
  return marked ? text.slice(1) : text;
}

function decodeUtf16(bytes: Uint8Array, encoding: "utf-16le" | "utf-16be", notes: Notes): string {
  notes.add("NOT_UTF8", `The file is ${encoding.toUpperCase()}; it should be UTF-8.`, 1);
  return new TextDecoder(encoding).decode(bytes);
}

/** The line, from 1, in which an offset lies. */
export function lineAt(text: string, offset: number): number {
  let line = 1;
  for (let at = text.indexOf("\n"); at !== -1 && at < offset; at = text.indexOf("\n", at + 1)) line += 1;
  return line;
}
