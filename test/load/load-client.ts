/** A WebSocket client that costs little: events are counted and not parsed. */
import { once } from "node:events";
import { WebSocket } from "ws";

type Reply = Readonly<Record<string, unknown>>;

export class LoadClient {
  readonly socket: WebSocket;
  /** Number of the last event. */
  last = 0;
  events = 0;
  /** Events that came out of order or twice. */
  disorder = 0;
  readonly #waiting = new Map<number, (reply: Reply) => void>();
  #id = 0;

  private constructor(socket: WebSocket) {
    this.socket = socket;
    socket.on("error", () => {});
    // Texts come as one Buffer.
    socket.on("message", (data) => this.#take(data as Buffer));
  }

  static async open(url: string, token: string): Promise<LoadClient> {
    const headers = { authorization: `Bearer ${token}` };
    const client = new LoadClient(
      new WebSocket(`${url.replace("http", "ws")}/ws`, { headers, perMessageDeflate: false }),
    );
    await once(client.socket, "open");
    return client;
  }

  /** Resolves with the reply; what is not ok fails. */
  async command(type: string, fields: object = {}): Promise<Reply> {
    const reply = await new Promise<Reply>((resolve) => {
      this.#waiting.set(++this.#id, resolve);
      this.socket.send(JSON.stringify({ ...fields, id: this.#id, type }));
    });
    if (reply["ok"] !== true) throw new Error(`${type}: ${JSON.stringify(reply["error"])}`);
    return reply;
  }

  async close(): Promise<void> {
    if (this.socket.readyState === WebSocket.CLOSED) return;
    const closed = once(this.socket, "close");
    this.socket.close();
    await closed;
  }

  #take(data: Buffer): void {
    const seq = /^\{"seq":(\d+),/.exec(data.toString("latin1", 0, 24))?.[1];
    if (seq !== undefined) {
      if (Number(seq) <= this.last) this.disorder += 1;
      this.last = Number(seq);
      this.events += 1;
      return;
    }
    const frame = JSON.parse(data.toString("utf8")) as Reply;
    const { id } = frame;
    if (typeof id !== "number" || typeof frame["ok"] !== "boolean") return;
    this.#waiting.get(id)?.(frame);
    this.#waiting.delete(id);
  }
}
