/** Finds out which protocol era a server speaks, on a channel that is already open. */
import type { Clock } from "../model/clock.ts";
import { ToolcribError } from "../model/errors.ts";
import { type Era, LEGACY_VERSIONS, MODERN_VERSION } from "../model/protocol.ts";
import type { TransportKind } from "../model/server-state.ts";
import type { ClientOffer } from "./client-offer.ts";
import { type Agreement, shakeHands, versionsOf } from "./handshake.ts";
import type { Peer } from "./peer.ts";
import { isModernErrorCode, rpcOf } from "./rpc-error.ts";

/** A legacy server may leave a modern probe unanswered, so the probe gets only a part of the time. */
const LONGEST_PROBE_MS = 10_000;

export interface Detection {
  readonly order: readonly Era[];
  /** Clock time by which the handshake must be over. */
  readonly deadline: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
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

export async function agree(peer: Peer, offer: ClientOffer, detection: Detection): Promise<Agreement> {
  const [first = "legacy", second] = detection.order;
  const left = (): number => Math.max(detection.deadline - detection.clock.now(), 1);
  const { signal } = detection;
  const firstTime = first === "modern" && second !== undefined ? Math.min(LONGEST_PROBE_MS, left() / 2) : left();
  try {
    return await shakeHands(first, peer, offer, { signal, timeoutMs: firstTime });
  } catch (firstError) {
    if (second === undefined || !speaksOtherEra(firstError, first, peer.wire.transport)) throw firstError;
    try {
      return await shakeHands(second, peer, offer, { signal, timeoutMs: left() });
    } catch (secondError) {
      // Most servers are legacy ones, so their refusal of `initialize` says more than that of a probe.
      throw first === "modern" || isUnauthorized(secondError) ? secondError : firstError;
    }
  }
}

/** Whether a failed handshake leaves the chance that the server speaks the other era. */
function speaksOtherEra(error: unknown, tried: Era, transport: TransportKind): boolean {
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
