/** Source ids of tools that run in this process: the hub's own, and those that a session brings. */
export const LOCAL_SOURCE = "local";

/** No id of a server has a colon. */
const OF_SESSION = `${LOCAL_SOURCE}:`;

export function localSourceOf(session: string): string {
  return `${OF_SESSION}${session}`;
}

export function isSessionLocal(source: string): boolean {
  return source.startsWith(OF_SESSION);
}

export function isLocalSource(source: string): boolean {
  return source === LOCAL_SOURCE || isSessionLocal(source);
}
