/** The program behind a request over HTTP: in its own words, and where the system tells, its process. */
import { readdir, readFile, readlink } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
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
  const inode = socketInode(await readFile(`/proc/net/${table}`, "utf8"), port, ours);
  const target = `socket:[${inode}]`;
  let looked = 0;
  if (inode === undefined) return undefined;
  for (const pid of new Set([...recent, ...(await readdir("/proc"))])) {
    if (!/^\d+$/.test(pid)) continue;
    // Only this user's can be read.
    for (const fd of await readdir(`/proc/${pid}/fd`).catch(() => [])) {
      if (++looked > MAX_LINKS) return undefined;
      if ((await readlink(`/proc/${pid}/fd/${fd}`).catch(() => "")) !== target) continue;
      recent = [pid, ...recent.filter((other) => other !== pid)].slice(0, MAX_RECENT);
      return { pid: Number(pid), program: programName(Number(pid)) };
    }
  }
  return undefined;
}

/** In the table of connections: the end that has their port, and is this user's. */
export function socketInode(table: string, port: number, ours: number): string | undefined {
  const portOf = (address = ""): number => Number.parseInt(address.slice(address.lastIndexOf(":") + 1), 16);
  for (const line of table.split("\n")) {
    const [, local, remote, , , , , uid, , inode] = line.trim().split(/\s+/);
    if (portOf(local) === port && portOf(remote) === ours && Number(uid) === process.getuid?.()) return inode;
  }
  return undefined;
}
