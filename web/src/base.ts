/** The path that the page is at, without a slash at its end: empty, or that of a proxy such as `/toolcrib`. Scripts are one folder below. */
const here = import.meta.url;

export const BASE = new URL("..", here).pathname.replace(/\/$/, "");
