/** The WebSocket to the hub: its address, its protocols, and the delay before a reconnect. */
import { SOCKET_PATH } from "../contract/rest.ts";

export interface Socket {
  send(text: string): void;
  close(): void;
  addEventListener(type: "message", listener: (event: { readonly data: unknown }) => void): void;
  addEventListener(type: "close", listener: () => void): void;
  addEventListener(type: "error", listener: () => void): void;
}

export type SocketMaker = new (address: string, protocols: string[]) => Socket;

const PROTOCOL = "toolcrib.v1";
/** The characters of a protocol name. */
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

export function socketAddress(url: string, query: string): string {
  return `${url.replace(/^http/, "ws")}${SOCKET_PATH}${query}`;
}

/** Browsers cannot set headers of a WebSocket, so the token or the page's key is sent as the name of a second protocol. */
export function socketProtocols(token: string | undefined, pageKey: string | undefined): string[] {
  if (token === undefined) return pageKey === undefined ? [PROTOCOL] : [PROTOCOL, `page.${pageKey}`];
  if (TOKEN.test(token)) return [PROTOCOL, `bearer.${token}`];
  throw new TypeError("A token for a WebSocket may contain only letters, digits and !#$%&'*+-.^_`|~.");
}

const FIRST_WAIT_MS = 300;
const MAX_WAIT_MS = 20_000;

/** Doubles with each attempt, with jitter so that clients do not reconnect at once. */
export function reconnectDelay(attempt: number, random: () => number = Math.random): number {
  const most = Math.min(MAX_WAIT_MS, FIRST_WAIT_MS * 2 ** Math.min(attempt, 10));
  return most / 2 + (random() * most) / 2;
}
