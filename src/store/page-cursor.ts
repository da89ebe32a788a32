/** Opaque cursors: the sort keys of the last entry of a page. */
import { ToolcribError } from "../model/errors.ts";

type CursorKeys = readonly (string | number)[];

export function makeCursor(keys: CursorKeys): string {
  return Buffer.from(JSON.stringify(keys)).toString("base64url");
}

/** `shape` is an example of the keys; anything else is `invalid_arguments`. */
export function readCursor<Keys extends CursorKeys>(cursor: string, shape: Keys): Keys {
  const keys = parse(cursor);
  const fits =
    Array.isArray(keys) &&
    keys.length === shape.length &&
    keys.every(
      (key, index) => typeof key === typeof shape[index] && (typeof key === "string" || Number.isSafeInteger(key)),
    );
  if (!fits) {
    throw new ToolcribError("invalid_arguments", "The cursor does not come from this list.", {
      hint: "Leave it out to begin with the first page.",
    });
  }
  // As many keys as the shape has, each of the same type.
  return keys as unknown as Keys;
}

function parse(cursor: string): unknown {
  try {
    return JSON.parse(Buffer.from(cursor, "base64url").toString("utf8"));
  } catch {
    return undefined;
  }
}
