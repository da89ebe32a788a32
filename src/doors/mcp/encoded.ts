/** One message as it goes to the client: text, and bytes that were encoded before. Never a line break in it. */
export type Encoded = readonly (string | Buffer)[];

/** Where messages go to a client: those of one request before its answer, or those of a session. Never throws. */
export interface Outlet {
  send(message: Encoded): void;
}
