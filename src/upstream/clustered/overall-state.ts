/** One state for a server that may run in several places, or between two of them. */
import type { ServerState } from "../../model/server-state.ts";
import { isUp, type Place } from "./place.ts";

export interface Circumstances {
  readonly isClosed: boolean;
  readonly isEnabled: boolean;
  /** Somebody wants it to run. */
  readonly isWanted: boolean;
  /** NATS answers. */
  readonly isClusterUp: boolean;
  /** It has been ready before, and was not disconnected since. */
  readonly wasUp: boolean;
  /** The node that ran it is there, and gave it away. */
  readonly isGivenAway: boolean;
  /** All nodes have tried, and this is why it runs nowhere. */
  readonly givenUp: { readonly reason: string; readonly hint?: string } | undefined;
  readonly now: number;
}

/** Another node needs about so long to take over. */
const TAKE_OVER_MS = 1000;

export function overallState(places: readonly Pick<Place, "state">[], now: Circumstances): ServerState {
  if (now.isClosed) return { kind: "closed" };
  if (!now.isEnabled) return { kind: "disabled" };
  if (!now.isWanted) return { kind: "idle" };
  const up = places.find(isUp)?.state;
  if (up !== undefined) return up;
  // A node that has failed gives the server to another one.
  const known = places.find(({ state }) => state?.kind === "connecting" || state?.kind === "restarting")?.state;
  if (known !== undefined) return known;
  if (now.givenUp !== undefined) {
    const { reason, hint } = now.givenUp;
    return { kind: "failed", reason, hint };
  }
  const takingOver = { kind: "restarting", attempt: 1, nextAt: now.now + TAKE_OVER_MS } as const;
  if (!now.isClusterUp) {
    return {
      ...takingOver,
      reason: "NATS cannot be reached, and without it nobody can say which node may run it",
      hint: "It starts by itself when NATS is back. `replicas: 2` or more lets a stateless server run meanwhile.",
    };
  }
  if (now.wasUp && !now.isGivenAway)
    return { ...takingOver, reason: "the node that ran it has gone; another takes over" };
  return { kind: "connecting" };
}
