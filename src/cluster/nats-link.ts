/**
 * The one connection of a node to NATS.
 *
 * Nothing is ever sent late. The client keeps what is published while it dials and sends it when it is connected, so a
 * request could run long after its caller gave up. Therefore this refuses to publish from the moment it hears of the loss
 * until the moment it hears of the new connection; what was published in the few microtasks before it heard is thrown away
 * by the client itself at the next dial. What lies in a socket that NATS has not read yet can still arrive; `epoch` is
 * there for that: it grows with each loss, requests carry it, and a node notifies the others which of its epochs are over.
 */
import { readFileSync } from "node:fs";
import type { JetStreamManager } from "@nats-io/jetstream";
import type { Kvm } from "@nats-io/kv";
import type { Authenticator, Msg, NatsConnection, NodeConnectionOptions } from "@nats-io/transport-node";
import { Emitter } from "../base/emitter.ts";
import type { ClusterConfig } from "../model/config.ts";
import { ToolcribError } from "../model/errors.ts";
import { type MessageSigner, ReplayGuard, SIGNATURE_BYTES } from "./message-signer.ts";

export interface LinkEvents {
  up: undefined;
  down: { readonly reason: string };
  warning: string;
  /** Something came that no node has signed, or that came before. It was dropped. */
  forged: { readonly subject: string };
}

/** As a node has sent it, or NATS itself: `status` 503 says that a subject has no listener. */
export interface LinkMessage {
  readonly subject: string;
  readonly reply: string | undefined;
  readonly data: Uint8Array;
  readonly status?: number;
}

export interface LinkSubscription {
  /** Nothing more is delivered. */
  unsubscribe(): void;
  /** NATS sends nothing more, and what it sent before is still delivered. */
  drain(): Promise<void>;
}

const NO_RESPONDERS = 503;

const NO_SUBSCRIPTION: LinkSubscription = { unsubscribe() {}, drain: () => Promise.resolve() };

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

  subscribe(subject: string, take: (message: LinkMessage) => void, queue?: string): LinkSubscription {
    if (this.#connection.isClosed()) return NO_SUBSCRIPTION;
    // Of each subscription: a message reaches every one that its subject fits.
    const taken = new ReplayGuard();
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

  #open({ subject, reply, data, headers }: Msg, taken: ReplayGuard): LinkMessage | undefined {
    // NATS itself reports that there is no listener, and cannot sign that.
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

/** Reported at start and by `doctor`. */
export const OPEN_NATS_WARNING =
  "NATS does not ask for credentials: anyone who can reach it can read and disturb what nodes send each other. Set up a user, a token or credentials in NATS, and name them in `cluster`.";

export interface ConnectOptions {
  /** Name of the node, for people. */
  readonly name: string;
  readonly timeoutMs: number;
  readonly signer: MessageSigner;
}

/** Opens the link, and says in our words why it cannot be opened. */
export async function connectNats(
  config: ClusterConfig,
  { name, timeoutMs, signer }: ConnectOptions,
): Promise<NatsLink> {
  const packages = await loadNats();
  const addresses = (Array.isArray(config.url) ? config.url : [config.url]).map(readAddress);
  const where = addresses.map(({ shown }) => shown).join(", ");
  const connection = await dial(packages, config, addresses, { name: `toolcrib ${name}`, timeoutMs, where });
  try {
    // Short enough that a renewal that got no answer is tried again before its lease runs out.
    const timeout = Math.min(5000, Math.max(500, config.leaseMs / 2));
    const manager = await packages.jetstream.jetstreamManager(connection, { timeout });
    const client = manager.jetstream();
    return new NatsLink(connection, { kvm: new packages.kv.Kvm(client), streams: manager.streams, packages, signer });
  } catch (error) {
    await connection.close();
    throw new ToolcribError("invalid_config", `NATS at ${where} offers no JetStream, which a cluster needs.`, {
      hint: "Start it with JetStream (nats-server -js), and allow it for the account.",
      cause: error,
    });
  }
}

interface Address {
  readonly server: string;
  /** Without credentials. */
  readonly shown: string;
  readonly user: string;
  readonly password: string;
}

function readAddress(text: string): Address {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw new ToolcribError("invalid_config", "The address of NATS in `cluster` is not a URL.", {
      hint: "Such as nats://127.0.0.1:4222.",
    });
  }
  const shown = `${url.protocol}//${url.host}${url.pathname === "/" ? "" : url.pathname}`;
  return {
    server: shown,
    shown,
    user: decodeURIComponent(url.username),
    password: decodeURIComponent(url.password),
  };
}

async function dial(
  packages: NatsPackages,
  config: ClusterConfig,
  addresses: readonly Address[],
  { name, timeoutMs, where }: { name: string; timeoutMs: number; where: string },
): Promise<NatsConnection> {
  const options: NodeConnectionOptions = {
    servers: addresses.map(({ server }) => server),
    name,
    timeout: timeoutMs,
    authenticator: authenticators(packages, config, addresses),
    ...(addresses.some(({ server }) => server.startsWith("tls:")) ? { tls: {} } : {}),
    reconnect: true,
    maxReconnectAttempts: -1,
    reconnectTimeWait: Math.min(500, config.leaseMs / 4),
    reconnectJitter: 100,
    ignoreAuthErrorAbort: true,
    // A NATS that does not answer is noticed within a lease.
    pingInterval: Math.ceil(config.leaseMs / 4),
    maxPingOut: 2,
  };
  const webSocket = addresses.some(({ server }) => server.startsWith("ws"));
  try {
    return await (webSocket ? packages.transport.wsconnect(options) : packages.transport.connect(options));
  } catch (error) {
    if (error instanceof packages.transport.AuthorizationError) {
      throw new ToolcribError("unauthorized", `NATS at ${where} does not accept the credentials.`, {
        hint: "Check the user and password in `cluster.url`, or `cluster.credentials`.",
      });
    }
    throw new ToolcribError("server_unavailable", `No NATS server can be reached at ${where}.`, {
      hint:
        "Start it (nats-server -js), or correct `cluster` in the config. A node does not start without it: have a " +
        "supervisor (systemd, Kubernetes) start the node again.",
      cause: error,
    });
  }
}

function authenticators(
  { transport }: NatsPackages,
  config: ClusterConfig,
  addresses: readonly Address[],
): Authenticator[] {
  const found: Authenticator[] = [];
  if (config.credentials !== undefined) {
    found.push(transport.credsAuthenticator(credentials(config.credentials)));
  }
  const named = addresses.find(({ user }) => user !== "");
  if (named === undefined) return found;
  // As nats:// addresses mean it: a name without a password is a token.
  if (named.password === "") found.push(transport.tokenAuthenticator(named.user));
  else found.push(transport.usernamePasswordAuthenticator(named.user, named.password));
  return found;
}

/** The text itself, or the file that has it. */
function credentials(text: string): Uint8Array {
  if (text.includes("-----BEGIN")) return new TextEncoder().encode(text);
  try {
    return readFileSync(text);
  } catch (error) {
    throw new ToolcribError("invalid_config", "The file that `cluster.credentials` names cannot be read.", {
      hint: "It is the credentials file of a NATS user, or its text.",
      cause: error,
    });
  }
}

/** The client of NATS is installed only by those who run a cluster. */
export async function loadNats() {
  try {
    const [transport, jetstream, kv] = await Promise.all([
      import("@nats-io/transport-node"),
      import("@nats-io/jetstream"),
      import("@nats-io/kv"),
    ]);
    return { transport, jetstream, kv };
  } catch (error) {
    const missing = error instanceof Error && "code" in error && error.code === "ERR_MODULE_NOT_FOUND";
    if (!missing) throw error;
    const name = /'(@nats-io\/[a-z-]+)'/.exec(error.message)?.[1] ?? "@nats-io/transport-node";
    throw new ToolcribError("invalid_config", `A cluster is configured, and the package "${name}" is not installed.`, {
      hint: "npm install @nats-io/transport-node @nats-io/jetstream @nats-io/kv",
      cause: error,
    });
  }
}

export type NatsPackages = Awaited<ReturnType<typeof loadNats>>;
