/** Place: a server where it runs, here or at another node. */
import type { Result } from "../../model/protocol.ts";
import type { ServerInfo, ServerState } from "../../model/server-state.ts";
import type { SessionContext } from "../../model/session.ts";
import type { Definitions, Use, UseContext } from "../../model/source.ts";
import type { SkillOffer } from "../skill-offer.ts";

export interface Place {
  /** Id of the node. */
  readonly node: string;
  readonly slot: number;
  /** Another one when a program has taken over that knows nothing of the sessions. */
  readonly mark: string;
  /** Undefined while that is not known. */
  readonly state: ServerState | undefined;
  /** Whether it takes calls; one that it does not take was not begun. */
  readonly isOpen: boolean;
  info(): ServerInfo | undefined;
  definitions(): Definitions;
  instructions(user?: string): string | null;
  skillOffer(): SkillOffer | undefined;
  run(use: Use, context: UseContext): Promise<Result>;
  refresh(): Promise<void>;
  connectUser(user: string): Promise<ServerInfo>;
  /** Of these nobody waits for the end, and none throws. */
  rootsChanged(): void;
  setLogLevel(level: string): void;
  startSession(session: SessionContext): void;
  endSession(sessionId: string): void;
  resume(session: SessionContext, uris: readonly string[]): void;
}

export function isUp({ state }: Pick<Place, "state">): boolean {
  return state?.kind === "ready" || state?.kind === "degraded";
}
