/** Link: one opened wire on which both sides agreed on a protocol. A Connection has a new one after every reconnect. */
import { ToolcribError } from "../model/errors.ts";
import type { Era } from "../model/protocol.ts";
import type { ServerSpec } from "../model/server-spec.ts";
import type { TransportKind } from "../model/server-state.ts";
import { type ResolvedSpec, resolveSpec } from "../secrets/resolve-spec.ts";
import { Secrets } from "../secrets/secrets.ts";
import type { ClientOffer } from "./client-offer.ts";
import type { ConnectionDeps } from "./connection-deps.ts";
import { agree, eraOrder, isUnauthorized } from "./era-detection.ts";
import { eraKey } from "./era-memory.ts";
import type { Agreement } from "./handshake.ts";
import type { WireCredentials } from "./http/authorized-client.ts";
import { offersFor } from "./offered-roots.ts";
import { openWire } from "./open-wire.ts";
import { Peer, type PeerOptions } from "./peer.ts";
import { checkRemoteAddress } from "./remote-address.ts";
import { credentialsFor, withLoginAdvice } from "./remote-login.ts";
import { isModernErrorCode, rpcOf } from "./rpc-error.ts";
import { METHOD_NOT_FOUND } from "../model/rpc.ts";
import type { Wire } from "./wire.ts";

export interface Link {
  readonly wire: Wire;
  readonly peer: Peer;
  readonly agreement: Agreement;
}

interface LinkRequest {
  readonly spec: ServerSpec;
  readonly deps: ConnectionDeps;
  readonly peerOptions: PeerOptions;
  readonly signal: AbortSignal;
}

/** When connecting must be over, all attempts together; getting ready moves it. */
interface ConnectTime {
  deadline: number;
}

/** Resolves references, opens a channel, shakes hands. Leaves nothing open when it rejects. */
export async function openLink(request: LinkRequest): Promise<Link> {
  const { spec, deps } = request;
  const resolved = await resolveSpec(spec, deps.secrets ?? secretsOf(deps), {
    signal: request.signal,
    ...userOf(deps),
  });
  for (const warning of resolved.warnings) request.peerOptions.onWarning?.(warning);
  if (resolved.url !== undefined) checkRemoteAddress(resolved.url, deps.reach, spec.allowHttp);
  const credentials = await credentialsFor(spec, resolved, deps);
  const time: ConnectTime = { deadline: deps.clock.now() + spec.timeout };
  const attempt = (kind: TransportKind, remembered: Era | undefined): Promise<Link> =>
    openOn(kind, eraOrder(kind, remembered), resolved, time, request, credentials);

  const key = eraKey(spec);
  const remembered = await deps.eras.get(key);
  const link = await openRemembering(spec, remembered, attempt).catch(async (error: unknown) => {
    throw credentials === undefined ? await withLoginAdvice(error, spec, resolved, deps) : error;
  });
  if (link.agreement.era !== remembered) await deps.eras.set(key, link.agreement.era);
  return link;
}

function userOf({ user, secretsUser = user }: ConnectionDeps): { user?: string } {
  return secretsUser === undefined ? {} : { user: secretsUser };
}

function secretsOf({ env, clock, redactor }: ConnectionDeps): Secrets {
  return new Secrets({ env, clock, redactor });
}

/** What is tried after a first attempt that failed in a way that leaves another one a chance. */
async function openRemembering(
  spec: ServerSpec,
  remembered: Era | undefined,
  attempt: (kind: TransportKind, remembered: Era | undefined) => Promise<Link>,
): Promise<Link> {
  const kind = firstTransport(spec);
  try {
    return await attempt(kind, remembered);
  } catch (error) {
    // A child that died of the modern probe is a legacy server by now.
    if (kind === "stdio" && remembered === "modern" && isExit(error)) return attempt(kind, "legacy");
    // A container is opened as what its entry says.
    if (kind !== "http" || spec.url === undefined || spec.transport !== undefined || !suggestsSse(error)) throw error;
    try {
      return await attempt("sse", undefined);
    } catch (sseError) {
      throw isUnauthorized(sseError) ? sseError : withNote(error, "SSE was tried too and did not answer either.");
    }
  }
}

export function firstTransport(spec: ServerSpec): TransportKind {
  if (spec.transport !== undefined) return spec.transport;
  const servesHttp = typeof spec.sandbox === "object" && spec.sandbox.port !== undefined;
  return spec.url === undefined && !servesHttp ? "stdio" : "http";
}

async function openOn(
  kind: TransportKind,
  order: readonly Era[],
  resolved: ResolvedSpec,
  time: ConnectTime,
  { spec, deps, peerOptions, signal }: LinkRequest,
  credentials: WireCredentials | undefined,
): Promise<Link> {
  const wire = (deps.openWire ?? openWire)(kind, spec, resolved, deps, credentials);
  const peer = new Peer(wire, peerOptions);
  try {
    const begun = deps.clock.now();
    if (wire.makeReady !== undefined) await wire.makeReady(signal);
    time.deadline += deps.clock.now() - begun;
    const { deadline } = time;
    await openInTime(wire, deadline, deps, signal);
    const offer: ClientOffer = {
      clientInfo: { name: "toolcrib", version: deps.clientVersion },
      offers: offersFor(deps.offers, spec),
      logLevel: deps.logLevel,
    };
    const agreement = await agree(peer, offer, { order, deadline, clock: deps.clock, signal });
    return { wire, peer, agreement };
  } catch (error) {
    peer.end(new ToolcribError("server_unavailable", "The connection could not be made."));
    await wire.close();
    throw error;
  }
}

async function openInTime(wire: Wire, deadline: number, deps: ConnectionDeps, signal: AbortSignal): Promise<void> {
  const late = new AbortController();
  const wait = Math.max(deadline - deps.clock.now(), 0);
  const stop = deps.clock.after(wait, () => late.abort());
  try {
    await wire.open(AbortSignal.any([signal, late.signal]));
  } catch (error) {
    if (!late.signal.aborted || signal.aborted) throw error;
    throw new ToolcribError("timeout", "The server could not be reached in time.", {
      details: { sent: false },
      cause: error,
    });
  } finally {
    stop();
  }
}

/** A 400, 404 or 405 that no modern server would send may come from a server of the older HTTP+SSE transport. */
function suggestsSse(error: unknown): boolean {
  if (!(error instanceof ToolcribError)) return false;
  const status = error.details?.["status"];
  if (status !== 400 && status !== 404 && status !== 405) return false;
  const rpc = rpcOf(error);
  return rpc === undefined || !(isModernErrorCode(rpc.code) || (status === 404 && rpc.code === METHOD_NOT_FOUND));
}

function isExit(error: unknown): boolean {
  return error instanceof ToolcribError && error.code === "server_unavailable" && rpcOf(error) === undefined;
}

function withNote(error: unknown, note: string): unknown {
  if (!(error instanceof ToolcribError)) return error;
  const { hint, details, code, message } = error;
  return new ToolcribError(code, `${message} ${note}`, { hint, details, cause: error });
}
