/** The forms that a secret turns up in: as it is, and as URLs, JSON, base64 and logs of them write it. */

/** Shorter pieces would blot out ordinary text. */
const SHORTEST_PIECE = 8;
const SHORTEST_LINE = 16;

export function formsOf(value: string): string[] {
  const forms = [value, ...percentForms(value), ...jsonForms(value), ...base64Forms(value)];
  const hex = Buffer.from(value, "utf8").toString("hex");
  if (hex.length >= 2 * SHORTEST_PIECE) forms.push(hex, hex.toUpperCase());
  // A key of several lines is printed line by line.
  if (value.includes("\n"))
    forms.push(...value.split(/\r?\n/).filter((line) => line.length >= SHORTEST_LINE && !line.startsWith("-----")));
  return forms;
}

/** encodeURIComponent throws on a lone surrogate; such a value is masked in its other forms. */
function percentForms(value: string): string[] {
  if (!value.isWellFormed()) return [];
  const component = encodeURIComponent(value);
  const lower = (text: string): string => text.replace(/%[0-9A-F]{2}/g, (code) => code.toLowerCase());
  const form = new URLSearchParams([["", value]]).toString().slice(1);
  const address = encodeURI(value);
  return [component, lower(component), component.replaceAll("%20", "+"), form, lower(form), address, lower(address)];
}

function jsonForms(value: string): string[] {
  const json = JSON.stringify(value).slice(1, -1);
  const ascii = json.replace(/[\u007f-\uffff]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
  return [json, ascii, json.replaceAll("/", "\\/"), JSON.stringify(json).slice(1, -1)];
}

/**
 * Alone, and inside of something longer, such as `user:secret` in a Basic header: what precedes shifts the letters in
 * one of three ways, and only those at the edges depend on the neighbours.
 */
function base64Forms(value: string): string[] {
  const bytes = Buffer.from(value, "utf8");
  const whole = bytes.toString("base64");
  const forms = [whole, whole.replace(/=+$/, "")];
  for (const shift of [0, 1, 2]) {
    const shifted = Buffer.concat([Buffer.alloc(shift), bytes]).toString("base64");
    const piece = shifted.slice(shift === 0 ? 0 : shift + 1, Math.floor(((shift + bytes.length) * 8) / 6));
    if (piece.length >= SHORTEST_PIECE) forms.push(piece);
  }
  return forms.flatMap((form) => [form, form.replaceAll("+", "-").replaceAll("/", "_")]);
}
