/** What is needed of a WebSocket, and how one to the hub is opened. */
import type { SOCKET_PATH } from "../contract/websocket.ts";

export interface Socket {
  send(text: string): void;
  close(): void;
  addEventListener(type: "message", listener: (event: { readonly data: unknown }) => void): void;
  addEventListener(type: "close", listener: () => void): void;
  addEventListener(type: "error", listener: () => void): void;
}

export type SocketMaker = new (address: string, protocols: string[]) => Socket;

/** By its type and not by its value, which would bring the schemas of all events along. */
const PATH: typeof SOCKET_PATH = "/ws";
const PROTOCOL = "toolcrib.v1";
/** What a protocol's name may be made of. */
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

export function socketAddress(url: string, query: string): string {
  return `${url.replace(/^http/, "ws")}${PATH}${query}`;
}

/** Browsers let nobody set a header of a WebSocket, so a token, or the page's key, travels as the name of a second protocol. */
export function socketProtocols(token: string | undefined, pageKey: string | undefined): string[] {
  if (token === undefined) return pageKey === undefined ? [PROTOCOL] : [PROTOCOL, `page.${pageKey}`];
  if (TOKEN.test(token)) return [PROTOCOL, `bearer.${token}`];
  throw new TypeError("A token for a WebSocket may hold only letters, digits and !#$%&'*+-.^_`|~.");
}

const FIRST_WAIT_MS = 300;
const MAX_WAIT_MS = 20_000;

/** How long to wait before the next attempt: twice as long each time, and never all clients at once. */
export function reconnectDelay(attempt: number, random: () => number = Math.random): number {
  const most = Math.min(MAX_WAIT_MS, FIRST_WAIT_MS * 2 ** Math.min(attempt, 10));
  return most / 2 + (random() * most) / 2;
}
