/** The end of a login at a remote server: what its authorization server sent back with the browser. */

export interface LoginCallback {
  readonly path: string;
  readonly query: string;
}

const CALLBACK = /\/oauth\/callback(?:\/[^/]+)?$/;

let waiting: LoginCallback | undefined;

/** Taken out of the address at once, so that the code stays in no history. */
export function takeLoginCallback(): void {
  const { pathname, search } = location;
  if (!CALLBACK.test(pathname)) return;
  waiting = { path: pathname, query: search };
  history.replaceState(null, "", pathname.replace(CALLBACK, "/logins"));
}

/** The one that waits, once. */
export function nextCallback(): LoginCallback | undefined {
  const callback = waiting;
  waiting = undefined;
  return callback;
}
