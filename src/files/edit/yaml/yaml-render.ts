/** Writes values as YAML: blocks as people write them, and the flow style for what stands between brackets. */
import { isJsonObject } from "../../../model/json.ts";

export interface YamlStyle {
  readonly lineBreak: string;
  /** One step of indentation; YAML knows spaces only. */
  readonly unit: string;
}

/** What follows a colon, its space or line break included. `indent` is that of the key. */
export function renderAfterColon(value: unknown, indent: string, style: YamlStyle): string {
  if (isFlat(value)) return ` ${renderFlow(value)}`;
  const inner = indent + style.unit;
  return `${style.lineBreak}${inner}${renderBlock(value, inner, style)}`;
}

/** The lines of a map or list without the indent of the first. */
export function renderBlock(value: unknown, indent: string, style: YamlStyle): string {
  const between = `${style.lineBreak}${indent}`;
  if (Array.isArray(value)) return value.map((item) => renderItem(item, indent, style)).join(between);
  if (!isJsonObject(value) || isFlat(value)) return renderFlow(value);
  return Object.entries(value)
    .map(([key, item]) => renderPair(key, item, indent, style))
    .join(between);
}

export function renderPair(key: string, value: unknown, indent: string, style: YamlStyle): string {
  return `${renderText(key)}:${renderAfterColon(value, indent, style)}`;
}

/** An item of a list; what it holds lines up behind its dash. */
export function renderItem(value: unknown, indent: string, style: YamlStyle): string {
  return `- ${renderBlock(value, `${indent}  `, style)}`;
}

export function renderFlow(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(renderFlow).join(", ")}]`;
  if (!isJsonObject(value)) return typeof value === "string" ? renderText(value) : JSON.stringify(value);
  const entries = Object.entries(value);
  if (entries.length === 0) return "{}";
  return `{ ${entries.map(([key, item]) => `${renderText(key)}: ${renderFlow(item)}`).join(", ")} }`;
}

function isFlat(value: unknown): boolean {
  return typeof value !== "object" || value === null || Object.keys(value).length === 0;
}

/** Words that some YAML reader or other takes for something else than a text. */
const WORDS = /^(?:true|false|yes|no|on|off|y|n|null|nan|inf)$/i;

/** Plain only where no reader can be in doubt. A JSON text is a YAML text but for the control characters it leaves. */
function renderText(text: string): string {
  if (/^[A-Za-z_/][\w/.+-]*$/.test(text) && !WORDS.test(text)) return text;
  return JSON.stringify(text).replaceAll(
    /[\u007F-\u009F\u2028\u2029\uFEFF\uFFFE\uFFFF]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
