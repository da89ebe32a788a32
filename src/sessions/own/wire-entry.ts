import type { Wire } from "../../upstream/wire.ts";

/**
 * A server that is reached in a way only the program knows, such as through the client's own connection. It stands in the
 * list of servers like any entry. The same object again means the same server.
 *
 *     await session.own.mount([new WireEntry("files", () => wireOverAcp(connection, "files"))]);
 */
export class WireEntry {
  readonly name: string;
  /** Makes an unopened wire; called again for every reconnect. */
  readonly open: () => Wire;

  constructor(name: string, open: () => Wire) {
    this.name = name;
    this.open = open;
  }
}
