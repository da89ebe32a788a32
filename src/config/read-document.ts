import { detectDialect } from "./dialects/detect.ts";
import { Document } from "./document.ts";

/** JSONC, or JSON5 where the file is of a program that writes it: only then is a lenient grammar no trap. */
export function parseConfigText(file: string, text: string): Document {
  const document = Document.parse(file, text);
  if (document.errors.length === 0) return document;
  const lenient = Document.parseJson5(file, text);
  return lenient !== undefined && detectDialect(lenient.value, file) === "openclaw" ? lenient : document;
}
