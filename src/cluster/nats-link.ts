/**
 * The one connection of a node to NATS.
 *
 * Nothing is ever sent late. The client keeps what is published while it dials and sends it when it is connected, so a
 * request could run long after its caller gave up. Therefore this refuses to publish from the moment it hears of the loss
 * until the moment it hears of the new connection; what was published in the few microtasks before it heard is thrown away
 * by the client itself at the next dial. What lies in a socket that NATS has not read yet can still arrive; `epoch` is
 * there for that: it grows with each loss, requests carry it, and a node tells the others which of its epochs are over.
 */
import type { JetStreamManager } from "@nats-io/jetstream";
import type { Kvm } from "@nats-io/kv";
import type { Msg, NatsConnection } from "@nats-io/transport-node";
import { Emitter } from "../model/emitter.ts";
import type { NatsPackages } from "./load-nats.ts";
import { type MessageSigner, SIGNATURE_BYTES, TakenMessages } from "./signature.ts";

export interface LinkEvents {
  up: undefined;
  down: { readonly reason: string };
  warning: string;
  /** Something came that no node has signed, or that came before. It was dropped. */
  forged: { readonly subject: string };
}

/** As a node has sent it, or NATS itself: `status` 503 says that nobody listens to a subject. */
export interface LinkMessage {
  readonly subject: string;
  readonly reply: string | undefined;
  readonly data: Uint8Array;
  readonly status?: number;
}

export interface Listening {
  /** Nothing more is delivered. */
  unsubscribe(): void;
  /** NATS sends nothing more, and what it sent before is still delivered. */
  drain(): Promise<void>;
}

const NO_RESPONDERS = 503;

const DEAF: Listening = { unsubscribe() {}, drain: () => Promise.resolve() };

export class NatsLink {
  readonly events = new Emitter<LinkEvents>();
  readonly kvm: Kvm;
  readonly streams: JetStreamManager["streams"];
  readonly packages: NatsPackages;
  readonly signer: MessageSigner;
  readonly #connection: NatsConnection;
  #isUp = true;
  #epoch = 0;
  #closing = false;
  #lastWarning = "";

  constructor(connection: NatsConnection, parts: Pick<NatsLink, "kvm" | "streams" | "packages" | "signer">) {
    this.#connection = connection;
    this.kvm = parts.kvm;
    this.streams = parts.streams;
    this.packages = parts.packages;
    this.signer = parts.signer;
    void this.#follow();
  }

  get isUp(): boolean {
    return this.#isUp && !this.#connection.isClosed();
  }

  /** Grows each time the connection is lost. */
  get epoch(): number {
    return this.#epoch;
  }

  get maxPayload(): number {
    return (this.#connection.info?.max_payload ?? 1024 * 1024) - SIGNATURE_BYTES;
  }

  /** Whether NATS lets in whoever reaches it. */
  get isOpenToAll(): boolean {
    const { info } = this.#connection;
    return info?.auth_required !== true && info?.tls_verify !== true;
  }

  /** False if nothing was sent, and nothing will be. */
  publish(subject: string, payload: Uint8Array, reply?: string): boolean {
    if (!this.isUp) return false;
    const signed = this.signer.sign(subject, reply ?? "", payload);
    this.#connection.publish(subject, signed, reply === undefined ? {} : { reply });
    return true;
  }

  subscribe(subject: string, take: (message: LinkMessage) => void, queue?: string): Listening {
    if (this.#connection.isClosed()) return DEAF;
    // Of each subscription: a message reaches every one that its subject fits.
    const taken = new TakenMessages();
    return this.#connection.subscribe(subject, {
      queue,
      callback: (error, message) => {
        if (error !== null) {
          this.events.emit("warning", `NATS refuses the subscription to ${subject}: ${error.message}`);
          return;
        }
        const opened = this.#open(message, taken);
        if (opened === undefined) {
          this.events.emit("forged", { subject: message.subject });
          return;
        }
        try {
          take(opened);
        } catch (thrown) {
          // It must not end the connection of everybody else.
          this.events.emit("warning", `A message to ${subject} could not be read: ${String(thrown)}`);
        }
      },
    });
  }

  #open({ subject, reply, data, headers }: Msg, taken: TakenMessages): LinkMessage | undefined {
    // NATS says itself that nobody listens, and cannot sign that.
    if (data.length === 0 && headers?.code === NO_RESPONDERS) return { subject, reply, data, status: NO_RESPONDERS };
    const opened = this.signer.open(subject, reply ?? "", data);
    if (opened === undefined || !taken.add(opened.sender, opened.number)) return undefined;
    return { subject, reply, data: opened.payload };
  }

  /** Resolves when NATS has taken all that was published before. */
  async flush(): Promise<void> {
    if (this.isUp) await this.#connection.flush();
  }

  async close(): Promise<void> {
    this.#closing = true;
    await this.#connection.close();
  }

  async #follow(): Promise<void> {
    for await (const status of this.#connection.status()) {
      if (this.#closing) continue;
      if (status.type === "disconnect") this.#lost("the connection to NATS was lost");
      else if (status.type === "staleConnection") this.#lost("NATS does not answer");
      else if (status.type === "reconnect") this.#back();
      else if (status.type === "error") this.#warnOnce(status.error.message);
    }
    if (!this.#closing) this.#lost("the connection to NATS was closed");
  }

  /** While it tries again and again, NATS says the same again and again. */
  #warnOnce(message: string): void {
    if (message === this.#lastWarning) return;
    this.#lastWarning = message;
    this.events.emit("warning", `NATS: ${message}`);
  }

  #lost(reason: string): void {
    if (!this.#isUp) return;
    this.#isUp = false;
    this.#epoch += 1;
    this.events.emit("down", { reason });
  }

  #back(): void {
    if (this.#isUp) return;
    this.#isUp = true;
    this.events.emit("up", undefined);
  }
}
