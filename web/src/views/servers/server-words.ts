/** Short texts and figures about servers. */
import type { ServerDetail } from "../../../../src/contract/server-schemas.ts";
import type { Stats } from "../../../../src/contract/stats-schemas.ts";
import { type Message, t } from "../../messages/messages.ts";
import { serverWords } from "../../messages/server-words.ts";

export const FROM_WORDS: Readonly<Record<ServerDetail["from"], Message>> = {
  file: serverWords.fromFile,
  import: serverWords.fromImport,
  store: serverWords.fromStore,
  skill: serverWords.fromSkill,
  code: serverWords.fromCode,
};

export const TRANSPORT_WORDS: Readonly<Record<ServerDetail["transport"], string>> = {
  stdio: "stdio",
  http: "HTTP",
  sse: "SSE",
};

/** The last part of a path. */
export function fileName(path: string): string {
  return path.split(/[\\/]/).findLast((part) => part !== "") ?? path;
}

/** The name of the file that has a server's entry; the file of the hub's own store says nothing. */
export function originText({ file, dialect }: ServerDetail["origin"]): string {
  return dialect === "store" ? t(serverWords.store) : fileName(file);
}

/** States in which connecting makes sense. */
export function canConnect(state: ServerDetail["state"]): boolean {
  return state === "idle" || state === "failed" || state === "closed";
}

export function canDisconnect(state: ServerDetail["state"]): boolean {
  return state === "ready" || state === "degraded" || state === "connecting" || state === "restarting";
}

/** Calls of a server in the last 24 hours. */
export interface RecentCalls {
  readonly calls: number;
  readonly series: readonly number[];
}

/** As many servers as the hub lists in its figures, those with the most calls. */
const LISTED = 50;

/** Undefined for a server of which nothing is known: figures of others may have taken its place in the list. */
export function recentCallsOf(
  stats: Pick<Stats, "servers" | "points"> | undefined,
): (serverId: string) => RecentCalls | undefined {
  if (stats === undefined) return () => undefined;
  const known = new Map(stats.servers.map((group) => [group.server, group]));
  const none = stats.servers.length < LISTED ? { calls: 0, series: stats.points.map(() => 0) } : undefined;
  return (serverId) => known.get(serverId) ?? none;
}
