/** The program behind a request over HTTP: in its own words, and where the system tells, its process. */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { CLIENT_HEADER } from "../../contract/rest.ts";
import type { Caller } from "../../model/caller.ts";
import { type ClientInfo, clientInfoOf } from "../../model/client-info.ts";
import { programName } from "../../files/processes.ts";
import { isLocalPeer, peerAddress } from "./hosts.ts";

/** `name/version`, as programs write it in User-Agent. */
const PRODUCT = /^([^\s/()]+)(?:\/(\S+))?/;

/** @param said By a client that cannot set headers. */
export function httpClientInfo(
  { headers }: Pick<IncomingMessage, "headers">,
  { user }: Pick<Caller, "user">,
  said?: string | null,
): ClientInfo | undefined {
  const named = said ?? headers[CLIENT_HEADER] ?? headers["user-agent"];
  const [, name, version] = PRODUCT.exec(typeof named === "string" ? named : "") ?? [];
  // All browsers call themselves that, with versions of others.
  const isBrowser = name === "Mozilla";
  const client = clientInfoOf({
    name: isBrowser ? "browser" : (name ?? user),
    version: isBrowser ? undefined : version,
  });
  return client && { ...client, transport: "http" };
}

export type LocalPeer = Pick<ClientInfo, "pid" | "program">;

const MAX_LINKS = 20_000;
/** Lists and links that are read in one turn of the event loop, in about a quarter of a millisecond. */
const READ_AT_ONCE = 64;
const MAX_WAITING = 20;
let waiting = 0;
let last: Promise<unknown> = Promise.resolve();
/** Processes that were found last, the latest first: a client that opens one session mostly opens more. */
let recent: readonly string[] = [];
const MAX_RECENT = 16;

/**
 * The process of this user at the other end of a connection on this machine; Linux only. It reads the process list, so it is
 * for the start of a session and not for every request. Never rejects.
 */
export function localPeer(socket: Socket): Promise<LocalPeer | undefined> {
  const { remotePort, localPort } = socket;
  if (process.platform !== "linux" || !isLocalPeer(socket) || remotePort === undefined || localPort === undefined) {
    return Promise.resolve(undefined);
  }
  if (waiting >= MAX_WAITING) return Promise.resolve(undefined);
  waiting += 1;
  const found = last
    .then(() => findPeer(remotePort, localPort, peerAddress(socket).includes(":") ? "tcp6" : "tcp"))
    .catch(() => undefined)
    .finally(() => (waiting -= 1));
  last = found;
  return found;
}

async function findPeer(port: number, ours: number, table: "tcp" | "tcp6"): Promise<LocalPeer | undefined> {
  const inode = socketInode(readFileSync(`/proc/net/${table}`, "utf8"), port, ours);
  const target = `socket:[${inode}]`;
  let looked = 0;
  if (inode === undefined) return undefined;
  for (const pid of new Set([...recent, ...readdirSync("/proc")])) {
    if (!/^\d+$/.test(pid)) continue;
    if (++looked % READ_AT_ONCE === 0) await nextTurn();
    for (const link of linksOf(pid)) {
      if (++looked > MAX_LINKS) return undefined;
      // The system has them in memory: a thread that reads one and reports back takes ten times as long, and leaves 1 KB behind.
      if (looked % READ_AT_ONCE === 0) await nextTurn();
      if (readLink(link) !== target) continue;
      recent = [pid, ...recent.filter((other) => other !== pid)].slice(0, MAX_RECENT);
      return { pid: Number(pid), program: programName(Number(pid)) };
    }
  }
  return undefined;
}

/** Empty if it is not this user's, or has ended. */
function linksOf(pid: string): string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`).map((fd) => `/proc/${pid}/fd/${fd}`);
  } catch {
    return [];
  }
}

function readLink(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}

/** In the table of connections: the end that has their port, and is this user's. */
export function socketInode(table: string, port: number, ours: number): string | undefined {
  const end = (number: number): string => `:${number.toString(16).toUpperCase().padStart(4, "0")}`;
  // Both addresses, four columns that do not matter, the user, another column and the inode.
  const row = new RegExp(`${end(port)} \\w+${end(ours)}(?: +\\S+){4} +(\\d+) +\\d+ +(\\d+)`, "g");
  for (const [, uid, inode] of table.matchAll(row)) if (Number(uid) === process.getuid?.()) return inode;
  return undefined;
}
