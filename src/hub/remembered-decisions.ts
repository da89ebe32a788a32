import type { Capability } from "../model/capability.ts";
import type { Decision } from "../model/decision.ts";
import { RecentMap } from "../model/recent-map.ts";
import type { SessionRules } from "../model/tool-rules.ts";
import type { Session } from "../sessions/session.ts";

/** Clients choose how they narrow: what was decided for the least recently used way is decided anew. */
const MOST_NARROWED = 64;
const MOST_ROLES = 256;

type OfCapability = WeakMap<Capability, Map<string, Decision>>;

/** What rules said of a capability to one kind of session, so that a call does not match every pattern anew. */
export class RememberedDecisions {
  readonly #plain: OfCapability = new WeakMap();
  readonly #narrowed = new RecentMap<SessionRules, OfCapability>(MOST_NARROWED);

  of(capability: Capability, session: Session, ownerOnly: boolean, decide: () => Decision): Decision {
    const capabilities = this.#for(session.rules);
    let decisions = capabilities.get(capability);
    if (decisions === undefined) capabilities.set(capability, (decisions = new Map()));
    const key = `${session.owner ? "owner" : "guest"} ${ownerOnly} ${session.role ?? ""}`;
    let decision = decisions.get(key);
    if (decision === undefined) {
      decision = decide();
      // Records show it to listeners, who must not change what holds for the next call.
      Object.freeze(decision.rule);
      // Every role costs as much again for each capability.
      if (decisions.size < MOST_ROLES) decisions.set(key, Object.freeze(decision));
    }
    return decision;
  }

  #for(rules: SessionRules | undefined): OfCapability {
    if (rules === undefined) return this.#plain;
    let capabilities = this.#narrowed.get(rules);
    if (capabilities === undefined) this.#narrowed.set(rules, (capabilities = new WeakMap()));
    return capabilities;
  }
}
