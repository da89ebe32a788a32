/**
 * The second half of a login. The browser gives the cookie to every port of the host, also to programs that are not the hub;
 * what is kept here only pages of this very address can read.
 */
import { BASE } from "./base.ts";

/** Two hubs may be under two paths of one address. */
const KEY = `toolcrib-page-key${BASE}`;

/** Where the browser keeps nothing for pages, for as long as the page is open. */
let here: string | undefined;

export function keptPageKey(): string | undefined {
  try {
    return localStorage.getItem(KEY) ?? here;
  } catch {
    return here;
  }
}

/** Calls `listener` when another tab logs in or out. */
export function onPageKey(listener: () => void): () => void {
  const heard = ({ key }: StorageEvent): void => {
    if (key === KEY || key === null) listener();
  };
  window.addEventListener("storage", heard);
  return () => window.removeEventListener("storage", heard);
}

export function keepPageKey(key: string | undefined): void {
  here = key;
  try {
    if (key === undefined) localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, key);
  } catch {
    // It is kept above.
  }
}
