/** Where this tab was when its login ended: a login link leads to the overview only. */
import { BASE } from "../base.ts";

const KEY = "toolcrib-return-to";

export function rememberPlace(): void {
  try {
    sessionStorage.setItem(KEY, location.pathname + location.search);
  } catch {
    // Where the browser keeps nothing for pages the overview has to do.
  }
}

export function forgetPlace(): void {
  try {
    sessionStorage.removeItem(KEY);
  } catch {
    // Nothing is kept.
  }
}

export function returnToPlace(): void {
  try {
    const place = sessionStorage.getItem(KEY);
    if (place !== null && location.pathname === `${BASE}/`) history.replaceState(null, "", place);
  } catch {
    // As above.
  }
}
