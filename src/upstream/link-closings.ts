/** The ends of links that a Connection no longer uses. */
import { ToolcribError } from "../model/errors.ts";
import type { Link } from "./link.ts";

export class LinkClosings {
  readonly #closing = new Set<Promise<void>>();
  readonly #draining = new Set<Link>();

  /** Ends what is under way on it, and then the link. */
  close(link: Link): void {
    this.#draining.delete(link);
    link.peer.end(new ToolcribError("server_unavailable", "the connection was closed", { details: { sent: true } }));
    const closing = link.wire.close().then(() => void this.#closing.delete(closing));
    this.#closing.add(closing);
  }

  /**
   * Closes it when what is under way on it has ended. When a server forgot a session each call of that session is told
   * so by itself, and that it was not run; ending them here would leave that open.
   */
  drain(link: Link): void {
    this.#draining.add(link);
    void link.peer.whenIdle().then(() => this.#draining.has(link) && this.close(link));
  }

  /** A new child must not meet the old one, so an attempt waits for this; links that drain are no children. */
  async settled(): Promise<void> {
    await Promise.all(this.#closing);
  }

  async closeAll(): Promise<void> {
    for (const link of this.#draining) this.close(link);
    await this.settled();
  }
}
