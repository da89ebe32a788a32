/** How a waiting call stands in the list of all: enough to tell it from the others, whatever its size. */
import type { AskRequest } from "../../model/ask.ts";
import type { JsonObject } from "../../model/json.ts";
import { withoutCredential } from "./kept-arguments.ts";

/** In characters: what is longer is shown by its beginning. */
const LONGEST_VALUE = 200;
const LONGEST_KEY = 100;
const LONGEST_TEXT = 500;
/** Bytes of JSON for the arguments of one call. */
const MOST_BYTES = 8 * 1024;
/** Masking takes time: of arguments that are larger only the short values are shown at all. */
const MOST_TO_MASK = 256 * 1024;

/** What of a request can be long. */
type Listable = Pick<AskRequest, "arguments" | "name" | "reason">;

export type ListedApproval<Request extends Listable = AskRequest> = Omit<Request, keyof Listable> &
  Listable & {
    /** There is more than is shown here: the call has to be looked at by its id. */
    readonly shortened?: true;
  };

/** @param mask Takes secrets out. It is given whole values: half a secret would not be known as one. */
export function listedApproval<Request extends Listable>(
  request: Request,
  mask: <Value>(value: Value) => Value,
): ListedApproval<Request> {
  const { arguments: args, name, reason, ...rest } = request;
  const shown = shortArguments(args, mask);
  // Of a resource the name is a URI, which may be as long as arguments are.
  const [wholeName, wholeReason] = [mask(name), mask(reason)];
  const isShortened = shown.isShortened || Math.max(wholeName.length, wholeReason.length) > LONGEST_TEXT;
  return {
    ...mask(rest),
    name: beginning(wholeName, LONGEST_TEXT),
    reason: beginning(wholeReason, LONGEST_TEXT),
    arguments: shown.arguments,
    ...(isShortened ? { shortened: true } : {}),
  };
}

function shortArguments(
  args: Readonly<JsonObject>,
  mask: <Value>(value: Value) => Value,
): { readonly arguments: JsonObject; readonly isShortened: boolean } {
  const isHuge = JSON.stringify(args).length > MOST_TO_MASK;
  // A map, because a key may be `__proto__`.
  const shown = new Map<string, unknown>();
  const entries = Object.entries(args);
  let isShortened = false;
  let bytes = 0;
  for (const [index, [key, value]] of entries.entries()) {
    const shownKey = unusedKey(shown, beginning(mask(key), LONGEST_KEY));
    const readable = isHuge && isLong(value) ? value : withoutCredential(key, value);
    const shownValue = isHuge ? shortOrSize(readable, mask) : shortValue(mask(readable));
    bytes += Buffer.byteLength(JSON.stringify([shownKey, shownValue]));
    if (bytes > MOST_BYTES) {
      shown.set(unusedKey(shown, "…"), `${entries.length - index} more keys`);
      isShortened = true;
      break;
    }
    isShortened ||= shownKey.length > LONGEST_KEY || isLong(value);
    shown.set(shownKey, shownValue);
  }
  return { arguments: Object.fromEntries(shown), isShortened };
}

function isLong(value: unknown): boolean {
  return JSON.stringify(value).length > LONGEST_VALUE;
}

function shortValue(value: unknown): unknown {
  const text = JSON.stringify(value);
  if (text.length <= LONGEST_VALUE) return value;
  return beginning(typeof value === "string" ? value : text, LONGEST_VALUE / 2);
}

function shortOrSize(value: unknown, mask: <Value>(value: Value) => Value): unknown {
  const { length } = JSON.stringify(value);
  return length <= LONGEST_VALUE ? mask(value) : `… ${length} characters of JSON`;
}

function beginning(text: string, longest: number): string {
  if (text.length <= longest) return text;
  return `${text.slice(0, longest).toWellFormed()}… and ${text.length - longest} more characters`;
}

/** Two keys that begin alike are two keys in the list as well. */
function unusedKey(shown: ReadonlyMap<string, unknown>, key: string): string {
  let unused = key;
  for (let number = 2; shown.has(unused); number++) unused = `${key} (${number})`;
  return unused;
}
