/** Values of the frontmatter that its text does not show: escapes, folded lines, JSON in JSON. */
import { isJsonObject, type JsonObject } from "../../model/json.ts";

const MOST_VALUES = 500;
const SHORTEST = 8;

interface HiddenValue {
  /** On one line. */
  readonly value: string;
  /** Of the key at the top that it belongs to. */
  readonly line: number;
}

/** Those alone that do not stand in the document as they are. */
export function frontmatterValues(frontmatter: JsonObject, document: string): HiddenValue[] {
  const values: HiddenValue[] = [];
  const pending: { value: unknown; key: string }[] = Object.entries(frontmatter).map(([key, value]) => ({
    value,
    key,
  }));
  for (let seen = 0; pending.length > 0 && seen < MOST_VALUES; seen += 1) {
    const { value, key } = pending.pop() ?? { value: undefined, key: "" };
    if (typeof value === "string") {
      if (value.length < SHORTEST || document.includes(value)) continue;
      values.push({ value: value.replaceAll(/[\r\n]+/g, " "), line: lineOf(document, key) });
    } else if (Array.isArray(value)) {
      for (const element of value.slice(0, MOST_VALUES)) pending.push({ value: element, key });
    } else if (isJsonObject(value)) {
      for (const member of Object.values(value).slice(0, MOST_VALUES)) pending.push({ value: member, key });
    }
  }
  return values;
}

function lineOf(document: string, key: string): number {
  const at = document.startsWith(`${key}:`) ? 0 : document.indexOf(`\n${key}:`) + 1;
  let line = 1;
  for (let next = document.indexOf("\n"); next !== -1 && next < at; next = document.indexOf("\n", next + 1)) line += 1;
  return line;
}
