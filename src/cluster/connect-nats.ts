/** Opens the link, and says in our words why it cannot be opened. */
import { readFileSync } from "node:fs";
import type { Authenticator, NatsConnection, NodeConnectionOptions } from "@nats-io/transport-node";
import type { ClusterConfig } from "../model/cluster-config.ts";
import { ToolcribError } from "../model/errors.ts";
import { loadNats, type NatsPackages } from "./load-nats.ts";
import { NatsLink } from "./nats-link.ts";
import type { MessageSigner } from "./signature.ts";

/** Told at start and by `doctor`. */
export const OPEN_NATS =
  "NATS asks for no credentials: whoever reaches it can read what nodes send each other and disturb them. Give it a user, a token or credentials, and name them in `cluster`.";

export interface ConnectOptions {
  /** Name of the node, for people. */
  readonly name: string;
  readonly timeoutMs: number;
  readonly signer: MessageSigner;
}

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
