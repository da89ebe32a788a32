/** Writes values as people write JSON by hand: lists of plain values stand on one line while they are short. */
import { isJsonObject } from "../../model/json.ts";
import type { BracketStyle, Layout } from "./bracket-edit.ts";

export interface JsonStyle extends BracketStyle {
  /** JSON has one way to write keys and texts, JSON5 several. */
  readonly quote: '"' | "'";
  readonly bareKeys: boolean;
}

const LIST_WIDTH = 100;

export function renderMember(key: string | undefined, value: unknown, style: JsonStyle, layout: Layout): string {
  const rendered = renderJson(value, style, layout);
  return key === undefined ? rendered : `${renderKey(key, style)}:${layout.space}${rendered}`;
}

export function renderJson(value: unknown, style: JsonStyle, layout: Layout): string {
  const { indent, oneLine, space } = layout;
  const inner = { ...layout, indent: indent + style.unit };
  if (Array.isArray(value)) {
    const items: string[] = value.map((item) => renderJson(item, style, inner));
    const flat = `[${items.join(`,${space}`)}]`;
    const plain = value.every((item) => typeof item !== "object");
    if (oneLine || value.length === 0 || (plain && flat.length + indent.length <= LIST_WIDTH)) return flat;
    return block("[", items, "]", style, indent);
  }
  if (!isJsonObject(value)) return renderScalar(value, style);
  const entries = Object.entries(value).filter(([, item]) => item !== undefined);
  const items = entries.map(([key, item]) => renderMember(key, item, style, inner));
  if (items.length === 0) return "{}";
  if (!oneLine) return block("{", items, "}", style, indent);
  return `{${space}${items.join(`,${space}`)}${space}}`;
}

function renderKey(key: string, style: JsonStyle): string {
  return style.bareKeys && /^[A-Za-z_$][\w$]*$/.test(key) ? key : renderScalar(key, style);
}

function renderScalar(value: unknown, { quote }: JsonStyle): string {
  // The two are line breaks to JavaScript, and the json5 package warns of them on the terminal.
  const json = (JSON.stringify(value) ?? "null").replaceAll("\u2028", "\\u2028").replaceAll("\u2029", "\\u2029");
  if (typeof value !== "string" || quote === '"') return json;
  return `'${json.slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`;
}

function block(
  open: string,
  items: readonly string[],
  close: string,
  { lineBreak, unit }: JsonStyle,
  indent: string,
): string {
  return `${open}${items.map((item) => `${lineBreak}${indent}${unit}${item}`).join(",")}${lineBreak}${indent}${close}`;
}
