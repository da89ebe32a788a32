/** Text as an HTTP header value, by the rule that MCP 2026-07-28 has for Mcp-Name and Mcp-Param-*. */
const PLAIN = /^[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?$/;
const SENTINEL = /^=\?base64\?.*\?=$/;

/** As it is where a header can carry it, in base64 with a mark otherwise; what looks like the mark is encoded too. */
export function encodeHeaderValue(value: string): string {
  if (PLAIN.test(value) && !SENTINEL.test(value)) return value;
  return `=?base64?${Buffer.from(value, "utf8").toString("base64")}?=`;
}
