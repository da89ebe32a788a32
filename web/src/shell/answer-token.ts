import { BASE } from "../base.ts";

/** The signed part of the address, if this is such a page. It stays in the address: reloading shows the same. */
export function takeAnswerToken(): string | undefined {
  return location.pathname === `${BASE}/answer` ? location.hash.slice(1) : undefined;
}
