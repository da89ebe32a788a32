/** What `/readyz` says: whether a balancer may send requests here, and what is wrong where they are served all the same. */
import type { ServerResponse } from "node:http";
import { ToolcribError } from "../../model/errors.ts";
import { sendJson } from "./answers.ts";

/** What a hub relies on. Public: no addresses, no names. */
export interface Reliance {
  readonly problems: readonly string[];
  readonly cluster?: { readonly nodes: number; readonly nats: "up" | "down" };
  readonly store?: "up" | "down";
}

export interface Readiness extends Reliance {
  /** `degraded` serves what it can. */
  readonly status: "ready" | "degraded" | "starting" | "stopping";
}

const WHY = {
  starting: "The hub is not ready: servers are still connecting.",
  stopping: "The hub is not ready: it is shutting down.",
} as const;

export function answerReadiness(response: ServerResponse, readiness: Readiness): void {
  const { status, problems, ...rest } = readiness;
  // A hub that relies on nothing has nothing more to say.
  const said = problems.length === 0 && Object.keys(rest).length === 0 ? { status } : { status, problems, ...rest };
  if (status === "ready" || status === "degraded") {
    sendJson(response, 200, said);
    return;
  }
  const error = new ToolcribError("server_unavailable", WHY[status]).toObject();
  sendJson(response, 503, { ...said, error });
}

export function readinessOf(
  state: { readonly isStopping: boolean; readonly isReady: boolean },
  reliance: Reliance,
): Readiness {
  if (state.isStopping) return { status: "stopping", ...reliance };
  if (!state.isReady) return { status: "starting", ...reliance };
  return { status: reliance.problems.length === 0 ? "ready" : "degraded", ...reliance };
}
