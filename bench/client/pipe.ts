/** A plain pipe to a stdio server: the floor below every gateway. */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import { plainEnvironment } from "../processes.ts";
import { type Answer, initializeParams, type McpClient, type Params } from "./protocol.ts";

export class PipeClient implements McpClient {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #waiting = new Map<number, (answer: Answer) => void>();
  #pieces: string[] = [];
  #lastId = 0;

  private constructor(args: readonly string[]) {
    this.#child = spawn(process.execPath, args, { stdio: ["pipe", "pipe", "inherit"], env: plainEnvironment() });
    this.#child.stdout.setEncoding("utf8").on("data", (chunk: string) => this.#receive(chunk));
  }

  static async open(args: readonly string[]): Promise<PipeClient> {
    const client = new PipeClient(args);
    await client.request("initialize", initializeParams());
    client.#send({ jsonrpc: "2.0", method: "notifications/initialized" });
    return client;
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  request(method: string, params: Params = {}): Promise<Answer> {
    const id = (this.#lastId += 1);
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, resolve);
      this.#child.once("error", reject);
      this.#send({ jsonrpc: "2.0", id, method, params });
      this.#child.off("error", reject);
    });
  }

  async close(): Promise<void> {
    const gone = new Promise((resolve) => this.#child.once("exit", resolve));
    this.#child.stdin.end();
    await gone;
  }

  #send(message: object): void {
    this.#child.stdin.write(`${JSON.stringify(message)}\n`);
  }

  #receive(chunk: string): void {
    let start = 0;
    for (let end = chunk.indexOf("\n"); end >= 0; end = chunk.indexOf("\n", start)) {
      this.#pieces.push(chunk.slice(start, end));
      const message: Answer = JSON.parse(this.#pieces.join(""));
      this.#pieces = [];
      start = end + 1;
      if (typeof message.id !== "number") continue;
      this.#waiting.get(message.id)?.(message);
      this.#waiting.delete(message.id);
    }
    if (start < chunk.length) this.#pieces.push(chunk.slice(start));
  }
}
