/** `unknown` values, because data of servers is passed on unchanged and only narrowed where it is read. */
export type JsonObject = { [key: string]: unknown };

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Undefined for a text that is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Undefined for a text that is not a JSON object. */
export function parseJsonObject(text: string): JsonObject | undefined {
  const value = parseJson(text);
  return isJsonObject(value) ? value : undefined;
}

/** A copy in which every text is changed; keys are not texts. */
export function mapTexts(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === "string") return change(value);
  if (Array.isArray(value)) return value.map((item) => mapTexts(item, change));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, mapTexts(item, change)]));
}

/** Those of a value that are text, in their order. */
export function textsIn(value: unknown): string[] {
  if (typeof value === "string") return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(textsIn) : [];
}

/** The value at a path; undefined where there is nothing. Own keys alone count, and in lists only indexes. */
export function valueAt(value: unknown, path: readonly (string | number)[]): unknown {
  let here = value;
  for (const step of path) {
    if (Array.isArray(here)) here = step === "" ? undefined : here[Number(step)];
    else here = isJsonObject(here) && Object.hasOwn(here, step) ? here[step] : undefined;
  }
  return here;
}

/** The keys and indexes that a JSON Pointer names, such as `/files/0`. */
export function pointerSteps(pointer: string, decode = (step: string): string => step): string[] {
  const steps = pointer.split("/").slice(1);
  return steps.map((step) => decode(step).replaceAll("~1", "/").replaceAll("~0", "~"));
}

/** The place in the same document that a `$ref` leads to: `#`, or `#` and a JSON Pointer, with escapes as in any URI. */
export function referencedIn(document: unknown, reference: string): unknown {
  return /^#(?:\/|$)/.test(reference) ? valueAt(document, pointerSteps(reference, unescapedStep)) : undefined;
}

function unescapedStep(step: string): string {
  try {
    return decodeURIComponent(step);
  } catch {
    return step;
  }
}

/**
 * JSON text that is the same for equal values: keys sorted by code unit, no spaces, `undefined` left out.
 * Recursive: the caller bounds the depth. A value that JSON cannot carry (bigint) throws.
 */
export function canonicalJson(value: unknown): string {
  return hasSortedKeys(value) ? (JSON.stringify(value) ?? "null") : sortedJson(value);
}

/** Looking is cheaper than sorting, and what comes from a lock file is sorted. */
function hasSortedKeys(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return true;
  if (Array.isArray(value)) return value.every(hasSortedKeys);
  if ("toJSON" in value) return false;
  let last = "";
  for (const key of Object.keys(value)) {
    // A non-null object that is not an array: any key of it may be read.
    if (key < last || !hasSortedKeys((value as JsonObject)[key])) return false;
    last = key;
  }
  return true;
}

function sortedJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(sortedJson).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  if ("toJSON" in value && typeof value.toJSON === "function") return sortedJson(JSON.parse(JSON.stringify(value)));
  // Written for speed: it runs over every definition of every server.
  let text = "";
  for (const key of Object.keys(value).toSorted()) {
    // A non-null object that is not an array: any key of it may be read.
    const member = (value as JsonObject)[key];
    if (member === undefined || typeof member === "function" || typeof member === "symbol") continue;
    text += `${text === "" ? "" : ","}${JSON.stringify(key)}:${sortedJson(member)}`;
  }
  return `{${text}}`;
}
