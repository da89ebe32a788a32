/** Results as people read them: the marks around untrusted text are for models, and a client shows whose text it is. */
import { MARKER } from "../../guard/wrap/marker.ts";
import { truncateMiddle } from "../../model/content.ts";
import { isJsonObject } from "../../model/json.ts";

/** Opening line, our own lines and an empty one, the text, and the closing line of the same id. */
const WRAPPED = new RegExp(
  `<<<${MARKER} id="([A-Za-z0-9_-]{8,64})" [^\\n]*>>>\\n(?:[^\\n]+\\n)*\\n([^]*?)\\n<<<END_${MARKER} id="\\1">>>`,
  "g",
);

/** Without the marks, wherever they stand in it. */
export function shownText(text: string): string {
  return text.includes(MARKER) ? text.replace(WRAPPED, (_whole, _id, inner: string) => inner) : text;
}

/** A value for programs, without the marks, and not much longer than `maxBytes`. */
export function shownValue(value: unknown, maxBytes: number): unknown {
  const shown = unmarked(value);
  const json = JSON.stringify(shown) ?? "";
  const bytes = Buffer.byteLength(json);
  if (bytes <= maxBytes) return shown;
  const note = `The output has ${bytes} bytes as JSON; beginning and end are shown.`;
  return { truncated: true, note, json: truncateMiddle(json, maxBytes, "[...]") };
}

function unmarked(value: unknown): unknown {
  if (typeof value === "string") return shownText(value);
  if (Array.isArray(value)) return value.map(unmarked);
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, unmarked(part)]));
}
