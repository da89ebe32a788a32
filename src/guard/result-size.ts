/** What must be escaped in JSON text, lone surrogates included. A native scan, cheap even for megabytes of base64. */
// oxlint-disable-next-line no-control-regex -- JSON escapes control characters
const NEEDS_ESCAPE = /["\\\u0000-\u001f\ud800-\udfff]/;

/**
 * Bytes of a value as JSON in UTF-8, without building that JSON. Exact up to `limit`; above it the walk stops and the
 * answer is only known to be larger than `limit`. A value that holds itself is larger than any finite limit.
 */
export function resultBytes(result: unknown, limit: number = Number.MAX_SAFE_INTEGER): number {
  let bytes = 0;
  // A stack of its own: nesting that JSON.parse survives would overflow a recursive walk.
  const pending: unknown[] = [result];
  while (pending.length > 0 && bytes <= limit) {
    const value = pending.pop();
    if (typeof value === "string") {
      bytes += stringBytes(value, limit - bytes);
    } else if (Array.isArray(value)) {
      bytes += 2 + Math.max(0, value.length - 1);
      for (const element of value) pending.push(isOmitted(element) ? null : element);
    } else if (typeof value === "object" && value !== null && !hasToJson(value)) {
      let members = 0;
      for (const [key, member] of Object.entries(value)) {
        if (isOmitted(member)) continue;
        members += 1;
        bytes += stringBytes(key, limit - bytes) + 1;
        pending.push(member);
      }
      bytes += 2 + Math.max(0, members - 1);
    } else {
      bytes += Buffer.byteLength(JSON.stringify(value) ?? "null");
    }
  }
  return bytes;
}

function stringBytes(text: string, room: number): number {
  // UTF-8 never takes fewer bytes than UTF-16 has units.
  if (text.length > room) return text.length + 2;
  return NEEDS_ESCAPE.test(text) ? Buffer.byteLength(JSON.stringify(text)) : Buffer.byteLength(text) + 2;
}

function isOmitted(value: unknown): boolean {
  return value === undefined || typeof value === "function" || typeof value === "symbol";
}

function hasToJson(value: object): boolean {
  return "toJSON" in value && typeof value.toJSON === "function";
}
