/** What a live link needs besides calls: pings, the stream of changes, renewed subscriptions, the log level. */
import type { Clock } from "../model/clock.ts";
import { asToolcribError, type ToolcribError } from "../model/errors.ts";
import { isJsonObject, type JsonObject } from "../model/json.ts";
import { LOG_LEVEL_KEY } from "../model/protocol.ts";
import { ChangeStream } from "./change-stream.ts";
import { Heartbeat } from "./heartbeat.ts";
import type { Link } from "./link.ts";
import type { RequestOptions } from "./request-options.ts";

interface LinkCareOptions {
  readonly clock: Clock;
  readonly logLevel: () => string | undefined;
  readonly timeoutMs: number;
  readonly warn: (text: string) => void;
  readonly onMissedPing: (missed: number, error: ToolcribError) => void;
  readonly onRecovered: () => void;
  readonly onStreamReopened: () => void;
}

export class LinkCare {
  readonly #link: Link;
  readonly #options: LinkCareOptions;
  readonly #stream: ChangeStream | undefined;
  #heartbeat: Heartbeat | undefined;

  constructor(link: Link, options: LinkCareOptions) {
    this.#link = link;
    this.#options = options;
    const { clock, warn, onStreamReopened } = options;
    if (link.agreement.era === "modern")
      this.#stream = new ChangeStream(link, { clock, warn, onReopened: onStreamReopened });
    this.#tellModern();
  }

  /** Asks for changes of the lists and of these resources. Never rejects. */
  async listen(uris: readonly string[]): Promise<void> {
    if (this.#stream !== undefined) return this.#stream.start(uris);
    await Promise.all([...uris.map((uri) => this.#ask("resources/subscribe", { uri })), this.logLevelChanged()]);
  }

  /** Tells the server which log messages are wanted. Never rejects. */
  async logLevelChanged(): Promise<void> {
    const level = this.#options.logLevel();
    if (this.#stream !== undefined) return this.#tellModern();
    const logs = isJsonObject(this.#link.agreement.capabilities["logging"]);
    if (logs && level !== undefined) await this.#ask("logging/setLevel", { level });
  }

  /** The level may have changed since the handshake began. */
  #tellModern(): void {
    const level = this.#options.logLevel();
    if (level !== undefined) this.#link.peer.extendEnvelope({ [LOG_LEVEL_KEY]: level });
  }

  async follow(uris: readonly string[]): Promise<void> {
    await this.#stream?.follow(uris);
  }

  /** Tells the server what is followed from now on without anybody having just asked for it. Never rejects. */
  async followAgain(news: readonly string[], all: readonly string[]): Promise<void> {
    if (this.#stream !== undefined) return this.#stream.start(all);
    await Promise.all(news.map((uri) => this.#ask("resources/subscribe", { uri })));
  }

  /** Tells the server what nobody follows any more; `left` is what somebody still does. Never rejects. */
  async unfollow(gone: readonly string[], left: readonly string[]): Promise<void> {
    if (this.#stream === undefined) await Promise.all(gone.map((uri) => this.#ask("resources/unsubscribe", { uri })));
    else await this.#stream.follow(left).catch(() => {});
  }

  /** From now on the link is pinged when it is idle. */
  watch(): void {
    const { clock, onMissedPing, onRecovered } = this.#options;
    this.#heartbeat = new Heartbeat(this.#link.peer, { clock, onMissed: onMissedPing, onRecovered });
  }

  acknowledge(params: JsonObject, request: RequestOptions | undefined): void {
    this.#stream?.acknowledge(params, request);
  }

  stop(): void {
    this.#heartbeat?.stop();
    this.#stream?.close();
  }

  async #ask(method: string, params: JsonObject): Promise<void> {
    try {
      await this.#link.peer.request(method, params, { timeoutMs: this.#options.timeoutMs });
    } catch (error) {
      this.#options.warn(`${method} failed: ${asToolcribError(error).message}`);
    }
  }
}
