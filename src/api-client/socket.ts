/** What is needed of a WebSocket, and how one to the hub is opened. */
import type { SOCKET_PATH } from "../contract/socket.ts";

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
