/** A piece of network between a node and what it needs, which a test can take away. */
import { createServer, connect, type AddressInfo, type NetConnectOpts, type Server, type Socket } from "node:net";

/**
 * `open` carries, `cut` drops what is there and refuses what comes, `silent` takes connections and carries nothing, neither
 * way, as a network does whose packets get lost.
 */
export type LinkState = "open" | "cut" | "silent";

export class Link {
  readonly #server: Server;
  readonly #target: () => NetConnectOpts;
  readonly #pairs = new Set<readonly [Socket, Socket]>();
  #state: LinkState = "open";

  private constructor(target: () => NetConnectOpts) {
    this.#target = target;
    // What one side has ended may still be answered by the other.
    this.#server = createServer({ allowHalfOpen: true }, (near) => this.#carry(near));
  }

  static async open(target: () => NetConnectOpts): Promise<Link> {
    const link = new Link(target);
    await new Promise<void>((resolve) => link.#server.listen(0, "127.0.0.1", resolve));
    return link;
  }

  get port(): number {
    // A TCP server that listens has such an address.
    return (this.#server.address() as AddressInfo).port;
  }

  get state(): LinkState {
    return this.#state;
  }

  set state(state: LinkState) {
    this.#state = state;
    for (const pair of [...this.#pairs]) {
      for (const socket of pair) {
        if (state === "cut") socket.destroy();
        else if (state === "silent") socket.pause();
        else socket.resume();
      }
    }
  }

  async close(): Promise<void> {
    this.state = "cut";
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #carry(near: Socket): void {
    near.on("error", () => {});
    if (this.#state === "cut") return void near.destroy();
    const far = connect({ ...this.#target(), allowHalfOpen: true });
    far.on("error", () => near.destroy());
    const pair = [near, far] as const;
    this.#pairs.add(pair);
    for (const [from, to] of [pair, [far, near] as const]) {
      from.setNoDelay(true);
      from.on("data", (chunk) => {
        if (!to.write(chunk)) from.pause();
      });
      to.on("drain", () => {
        if (this.#state === "open") from.resume();
      });
      from.on("end", () => to.end());
      from.on("close", () => {
        to.destroy();
        this.#pairs.delete(pair);
      });
    }
    if (this.#state === "silent") for (const socket of pair) socket.pause();
  }
}
