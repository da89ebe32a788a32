/**
 * A load balancer as simple as they come: the next node for each request, no stickiness. Nodes that do not say they are ready
 * get nothing; where none does, all do, as balancers in use hold it. A node that refuses the connection is passed over,
 * because nothing was sent; a request that was sent is never sent again, unless that is asked for.
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

interface BalancerOptions {
  /** False for one that turns away from a node only when it refuses connections, as the open-source nginx. */
  readonly asksReadiness?: boolean;
  /**
   * A request whose connection is reset before any byte of a response goes to the next node, as with `proxy_next_upstream error` of
   * nginx for methods that may be repeated. The operating system resets connections that a listener has not accepted when it closes.
   */
  readonly passesOn?: boolean;
}

export class Balancer {
  readonly #backends: readonly Backend[];
  readonly #asksReadiness: boolean;
  readonly #ready = new Set<string>();
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #turn = 0;
  #poll: NodeJS.Timeout | undefined;
  readonly #passesOn: boolean;
  /** How many requests each node got. */
  readonly counts = new Map<string, number>();
  /** How many connections were reset without a response, and their requests passed on. */
  resets = 0;

  private constructor(backends: readonly Backend[], { asksReadiness = true, passesOn = false }: BalancerOptions) {
    this.#backends = backends;
    this.#asksReadiness = asksReadiness;
    this.#passesOn = passesOn;
    this.#server = createServer((incoming, outgoing) => void this.#pass(incoming, outgoing));
    this.#server.on("connection", (socket) => {
      this.#sockets.add(socket);
      socket.on("close", () => this.#sockets.delete(socket));
    });
  }

  static async open(backends: readonly Backend[], options: BalancerOptions = {}): Promise<Balancer> {
    const balancer = new Balancer(backends, options);
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
    const body = this.#passesOn ? await bodyOf(incoming) : incoming;
    for (let tried = 0; tried < choice.length; tried += 1) {
      const backend = choice[(this.#turn + tried) % choice.length];
      const socket = backend?.port === undefined ? undefined : await connectTo(backend.port);
      if (socket === undefined || backend === undefined) continue;
      this.counts.set(backend.name, (this.counts.get(backend.name) ?? 0) + 1);
      const failure = await carry(incoming, body, outgoing, socket);
      if (failure === undefined) return;
      if (!this.#passesOn || !isReset(failure)) {
        outgoing.writeHead(502, { "content-type": "text/plain" }).end(`The node did not answer: ${failure.message}`);
        return;
      }
      this.resets += 1;
    }
    outgoing.writeHead(503, { "content-type": "text/plain" }).end("No node takes connections.");
  }
}

/** Resolves when the response has begun or the client has gone; with the error if there was no response. */
function carry(
  { method, url, headers }: IncomingMessage,
  body: Buffer | IncomingMessage,
  outgoing: ServerResponse,
  socket: Socket,
): Promise<Error | undefined> {
  return new Promise((resolve) => {
    const sent = request({ method, path: url, headers, createConnection: () => socket });
    sent.on("response", (answer) => {
      resolve(undefined);
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      // An event stream may say nothing for long: the client must know that it is open.
      outgoing.flushHeaders();
      answer.on("error", () => outgoing.destroy());
      answer.on("close", () => answer.complete || outgoing.destroy());
      answer.pipe(outgoing);
    });
    sent.on("error", (error) => {
      if (outgoing.headersSent) outgoing.destroy();
      resolve(outgoing.destroyed ? undefined : error);
    });
    outgoing.on("close", () => sent.destroy());
    if (Buffer.isBuffer(body)) sent.end(body);
    else {
      body.on("error", () => sent.destroy());
      body.pipe(sent);
    }
  });
}

async function bodyOf(incoming: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer); // No encoding is set.
  return Buffer.concat(chunks);
}

/** `socket hang up` has the same code: the node closed the connection in order, which it does to none that it has accepted. */
function isReset(error: Error): boolean {
  return (
    "code" in error && (error.code === "ECONNRESET" || error.code === "EPIPE") && error.message !== "socket hang up"
  );
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
