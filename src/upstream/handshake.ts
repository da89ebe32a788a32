/** How each protocol era opens: `initialize` in the legacy one, `server/discover` in the modern one. */
import type { Pauses } from "../base/async.ts";
import type { Clock } from "../base/clock.ts";
import { ToolcribError } from "../model/errors.ts";
import { isJsonObject, type JsonObject } from "../model/json.ts";
import {
  type Era,
  LATEST_LEGACY_VERSION,
  LEGACY_VERSIONS,
  MODERN_VERSION,
  SERVER_INFO_KEY,
  UNSUPPORTED_VERSION,
} from "../model/protocol.ts";
import type { TransportKind } from "../model/server-state.ts";
import type { Peer } from "./peer.ts";
import { isModernErrorCode, rpcOf } from "./rpc-error.ts";
import { type ClientOffer, modernEnvelope } from "./server-requests.ts";

/** The facts that both sides have after the handshake. */
export interface Agreement {
  readonly era: Era;
  readonly version: string;
  readonly capabilities: JsonObject;
  readonly serverInfo: JsonObject | null;
  readonly instructions: string | null;
}

interface HandshakeOptions {
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
  readonly pauses: Pauses;
}

function performHandshake(era: Era, peer: Peer, offer: ClientOffer, options: HandshakeOptions): Promise<Agreement> {
  return era === "legacy" ? initialize(peer, offer, options) : discover(peer, offer, options);
}

async function initialize(peer: Peer, offer: ClientOffer, options: HandshakeOptions): Promise<Agreement> {
  const params = {
    protocolVersion: LATEST_LEGACY_VERSION,
    capabilities: offer.offers,
    clientInfo: offer.clientInfo,
  };
  const result = await peer.request("initialize", params, { ...options, uncancellable: true });
  const version = result["protocolVersion"];
  if (!LEGACY_VERSIONS.some((known) => known === version)) throw versionMismatch([version]);
  const agreement = agreementOf("legacy", String(version), result, result["serverInfo"]);
  peer.wire.agreed({ era: "legacy", version: agreement.version });
  await peer.notify("notifications/initialized");
  return agreement;
}

async function discover(peer: Peer, offer: ClientOffer, options: HandshakeOptions): Promise<Agreement> {
  peer.setEnvelope(modernEnvelope(offer, MODERN_VERSION));
  try {
    const result = await discoverTwice(peer, options);
    const supported = result["supportedVersions"];
    if (!Array.isArray(supported) || supported.length === 0) throw notModern();
    if (!supported.includes(MODERN_VERSION)) throw versionMismatch(supported);
    const meta = isJsonObject(result["_meta"]) ? result["_meta"] : {};
    // Revisions before the final one carried `serverInfo` in the body.
    const serverInfo = meta[SERVER_INFO_KEY] ?? result["serverInfo"];
    const agreement = agreementOf("modern", MODERN_VERSION, result, serverInfo);
    peer.wire.agreed({ era: "modern", version: MODERN_VERSION });
    return agreement;
  } catch (error) {
    peer.setEnvelope(undefined);
    const refused = refusedVersions(error);
    throw refused === undefined ? error : versionMismatch(refused);
  }
}

/** A refusal that lists the very version it was asked in is taken at its list: the request goes out once more. */
async function discoverTwice(peer: Peer, options: HandshakeOptions): Promise<JsonObject> {
  const ask = (): Promise<JsonObject> => peer.request("server/discover", {}, options);
  try {
    return await ask();
  } catch (error) {
    if (refusedVersions(error)?.includes(MODERN_VERSION) !== true) throw error;
    return ask();
  }
}

/** The versions that a server speaks which refuses ours; undefined for any other error. */
function refusedVersions(error: unknown): unknown[] | undefined {
  const rpc = rpcOf(error);
  if (rpc?.code !== UNSUPPORTED_VERSION) return undefined;
  const supported = isJsonObject(rpc.data) ? rpc.data["supported"] : undefined;
  return Array.isArray(supported) ? supported : [];
}

function agreementOf(era: Era, version: string, result: JsonObject, serverInfo: unknown): Agreement {
  return {
    era,
    version,
    capabilities: isJsonObject(result["capabilities"]) ? result["capabilities"] : {},
    serverInfo: isJsonObject(serverInfo) ? serverInfo : null,
    instructions: typeof result["instructions"] === "string" ? result["instructions"] : null,
  };
}

/** `details.versions` are the server's; what to do next depends on whether one of them belongs to the other era. */
function versionMismatch(versions: unknown): ToolcribError {
  const theirs = Array.isArray(versions) ? versions.filter((version) => typeof version === "string") : [];
  const ours = [MODERN_VERSION, ...LEGACY_VERSIONS].join(", ");
  return new ToolcribError(
    "server_unavailable",
    `The server speaks protocol version ${theirs.join(", ") || "(none given)"}; Toolcrib speaks ${ours}.`,
    { hint: "Use a version of the server that speaks one of these.", details: { versions: theirs, permanent: true } },
  );
}

/** Some legacy servers answer any method; what they say to `server/discover` names no versions. */
function notModern(): ToolcribError {
  return new ToolcribError("server_unavailable", "The server's answer to server/discover names no protocol versions.", {
    details: { otherEra: true },
  });
}

function versionsOf(error: unknown): readonly string[] | undefined {
  const versions = error instanceof ToolcribError ? error.details?.["versions"] : undefined;
  return Array.isArray(versions) ? versions.filter((version) => typeof version === "string") : undefined;
}

/** A legacy server may leave a modern probe unanswered, so the probe gets only a part of the time. */
const MAX_PROBE_MS = 10_000;

interface Detection {
  readonly order: readonly Era[];
  /** Clock time by which the handshake must be over. */
  readonly deadline: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** They move the deadline. */
  readonly pauses: Pauses;
}

/**
 * stdio begins with `initialize` unless the server is known to be modern: a legacy child may die of an unknown first
 * request, and a second process only for a probe would fight over lock files. HTTP begins with the modern probe.
 */
export function eraOrder(transport: TransportKind, remembered: Era | undefined): readonly Era[] {
  if (transport === "sse") return ["legacy"];
  const first = remembered ?? (transport === "stdio" ? "legacy" : "modern");
  return first === "legacy" ? ["legacy", "modern"] : ["modern", "legacy"];
}

/** Finds out which protocol era a server speaks, on a channel that is already open. */
export async function agreeOnProtocol(peer: Peer, offer: ClientOffer, detection: Detection): Promise<Agreement> {
  const [first = "legacy", second] = detection.order;
  const { signal, pauses } = detection;
  const left = (): number => Math.max(detection.deadline + pauses.totalMs() - detection.clock.now(), 1);
  const firstTime = first === "modern" && second !== undefined ? Math.min(MAX_PROBE_MS, left() / 2) : left();
  try {
    return await performHandshake(first, peer, offer, { signal, pauses, timeoutMs: firstTime });
  } catch (firstError) {
    if (second === undefined || !maySpeakOtherEra(firstError, first, peer.wire.transport)) throw firstError;
    try {
      return await performHandshake(second, peer, offer, { signal, pauses, timeoutMs: left() });
    } catch (secondError) {
      // Most servers are legacy ones, so their refusal of `initialize` says more than that of a probe.
      throw first === "modern" || isUnauthorized(secondError) ? secondError : firstError;
    }
  }
}

/** Whether a failed handshake leaves the chance that the server speaks the other era. */
function maySpeakOtherEra(error: unknown, tried: Era, transport: TransportKind): boolean {
  if (!(error instanceof ToolcribError) || isUnauthorized(error)) return false;
  if (error.code === "cancelled") return false;
  if (error.code === "timeout") return tried === "modern";
  if (error.details?.["otherEra"] === true) return true;
  const versions = versionsOf(error);
  if (versions !== undefined) return versions.some((version) => eraOfVersion(version) === otherEra(tried));
  const rpc = rpcOf(error);
  if (rpc !== undefined) return !isModernErrorCode(rpc.code) || tried === "legacy";
  if (typeof error.details?.["status"] === "number") return true;
  return tried === "modern" && transport === "http" && error.details?.["sent"] !== false;
}

function otherEra(era: Era): Era {
  return era === "legacy" ? "modern" : "legacy";
}

function eraOfVersion(version: string): Era | undefined {
  if (version === MODERN_VERSION) return "modern";
  return LEGACY_VERSIONS.some((known) => known === version) ? "legacy" : undefined;
}

export function isUnauthorized(error: unknown): boolean {
  if (!(error instanceof ToolcribError)) return false;
  const status = error.details?.["status"];
  return error.code === "unauthorized" || status === 401 || status === 403;
}
