/**
 * A load balancer as simple as they come: the next node for each request, no stickiness. Nodes that do not say they are ready
 * get nothing; where none does, all do, as balancers in use hold it. A node that refuses the connection is passed over,
 * because nothing was sent; a request that was sent is never sent again.
 */
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";

export interface Backend {
  readonly name: string;
  /** Undefined while it is not running. */
  readonly port: number | undefined;
}

const POLL_MS = 200;
const POLL_TIMEOUT_MS = 1000;
const CONNECT_TIMEOUT_MS = 1000;

export class Balancer {
  readonly #backends: readonly Backend[];
  readonly #asksReadiness: boolean;
  readonly #ready = new Set<string>();
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #turn = 0;
  #poll: NodeJS.Timeout | undefined;
  /** How many requests each node got. */
  readonly counts = new Map<string, number>();

  private constructor(backends: readonly Backend[], asksReadiness: boolean) {
    this.#backends = backends;
    this.#asksReadiness = asksReadiness;
    this.#server = createServer((incoming, outgoing) => void this.#pass(incoming, outgoing));
    this.#server.on("connection", (socket) => {
      this.#sockets.add(socket);
      socket.on("close", () => this.#sockets.delete(socket));
    });
  }

  /** @param asksReadiness False for one that turns away from a node only when it refuses connections, as the open-source nginx. */
  static async open(backends: readonly Backend[], { asksReadiness = true } = {}): Promise<Balancer> {
    const balancer = new Balancer(backends, asksReadiness);
    await new Promise<void>((resolve) => balancer.#server.listen(0, "127.0.0.1", resolve));
    const look = async (): Promise<void> => {
      await Promise.all(backends.map((backend) => balancer.#look(backend)));
      if (balancer.#server.listening) balancer.#poll = setTimeout(() => void look(), POLL_MS);
    };
    await look();
    return balancer;
  }

  get url(): string {
    // A TCP server that listens has such an address.
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  isReady(name: string): boolean {
    return this.#ready.has(name);
  }

  async close(): Promise<void> {
    clearTimeout(this.#poll);
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
    clearTimeout(this.#poll);
  }

  async #look({ name, port }: Backend): Promise<void> {
    const status = port === undefined ? 0 : await statusOf(port);
    if (status === 200) this.#ready.add(name);
    else this.#ready.delete(name);
  }

  async #pass(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const running = this.#backends.filter(({ port }) => port !== undefined);
    const ready = this.#asksReadiness ? running.filter(({ name }) => this.#ready.has(name)) : [];
    const choice = ready.length > 0 ? ready : running;
    this.#turn += 1;
    for (let tried = 0; tried < choice.length; tried += 1) {
      const backend = choice[(this.#turn + tried) % choice.length];
      const socket = backend?.port === undefined ? undefined : await connectTo(backend.port);
      if (socket === undefined || backend === undefined) continue;
      this.counts.set(backend.name, (this.counts.get(backend.name) ?? 0) + 1);
      return carry(incoming, outgoing, socket);
    }
    outgoing.writeHead(503, { "content-type": "text/plain" }).end("No node takes connections.");
  }
}

function carry(incoming: IncomingMessage, outgoing: ServerResponse, socket: Socket): void {
  const { method, url, headers } = incoming;
  const sent = request({ method, path: url, headers, createConnection: () => socket });
  sent.on("response", (answer) => {
    outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
    // An event stream may say nothing for long: the client must know that it is open.
    outgoing.flushHeaders();
    answer.on("error", () => outgoing.destroy());
    answer.on("close", () => answer.complete || outgoing.destroy());
    answer.pipe(outgoing);
  });
  sent.on("error", (error) => {
    if (outgoing.headersSent) outgoing.destroy();
    else outgoing.writeHead(502, { "content-type": "text/plain" }).end(`The node did not answer: ${error.message}`);
  });
  outgoing.on("close", () => sent.destroy());
  incoming.on("error", () => sent.destroy());
  incoming.pipe(sent);
}

/** Undefined if nobody takes the connection. */
function connectTo(port: number): Promise<Socket | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: "127.0.0.1", noDelay: true });
    const timer = setTimeout(() => socket.destroy(), CONNECT_TIMEOUT_MS);
    socket.once("connect", () => {
      clearTimeout(timer);
      socket.removeAllListeners("close");
      socket.removeAllListeners("error");
      resolve(socket);
    });
    socket.once("error", () => {});
    socket.once("close", () => {
      clearTimeout(timer);
      resolve(undefined);
    });
  });
}

/** What the node says at /readyz; 0 if it says nothing. */
function statusOf(port: number): Promise<number> {
  return new Promise((resolve) => {
    const sent = request({ port, host: "127.0.0.1", path: "/readyz", agent: false }, (answer) => {
      answer.resume();
      resolve(answer.statusCode ?? 0);
    });
    sent.setTimeout(POLL_TIMEOUT_MS, () => sent.destroy());
    sent.on("error", () => resolve(0));
    sent.on("close", () => resolve(0));
    sent.end();
  });
}
