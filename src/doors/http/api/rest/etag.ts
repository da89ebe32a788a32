/** Entity tags of whole answers, so that nobody is sent what they have. */
import { hash } from "node:crypto";
import type { IncomingMessage } from "node:http";

export function bodyTag(body: string): string {
  return `"${hash("sha1", body, "base64url")}"`;
}

/** Whether the caller has this answer already. */
export function isKnown({ headers }: IncomingMessage, tag: string): boolean {
  const given = headers["if-none-match"];
  if (given === undefined) return false;
  return given.trim() === "*" || tagsIn(given).includes(bare(tag));
}

/** Also without quotes, as people write them by hand. */
function tagsIn(header: string): string[] {
  return header
    .split(",")
    .map((tag) => bare(tag.trim()))
    .filter((tag) => tag !== "");
}

function bare(tag: string): string {
  return tag.replace(/^W\//, "").replace(/^"(.*)"$/, "$1");
}
