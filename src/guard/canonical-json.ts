/**
 * JSON text that is the same for equal values: keys sorted by code unit, no spaces, `undefined` left out.
 * Recursive: the caller bounds the depth. A value that JSON cannot carry (bigint) throws.
 */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  if ("toJSON" in value && typeof value.toJSON === "function") return canonicalJson(JSON.parse(JSON.stringify(value)));
  const members: string[] = [];
  for (const [key, member] of Object.entries(value).toSorted(byKey)) {
    if (member === undefined || typeof member === "function" || typeof member === "symbol") continue;
    members.push(`${JSON.stringify(key)}:${canonicalJson(member)}`);
  }
  return `{${members.join(",")}}`;
}

function byKey([a]: [string, unknown], [b]: [string, unknown]): number {
  return a < b ? -1 : 1;
}
