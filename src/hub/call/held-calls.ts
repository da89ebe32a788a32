/** Calls that were refused because no one could be asked, kept for a later approval, and approvals that wait for their call. */
import type { AskRequest } from "../../model/decision.ts";
import type { Clock } from "../../base/clock.ts";
import type { Session } from "../../sessions/session.ts";
import type { SharedPrincipals } from "../cluster/shared-principals.ts";

/** Above this the oldest of the caller go first. */
const MAX_HELD_PER_CALLER = 20;
/** Above this the oldest of the caller with the most go first: a caller that asks for little loses nothing to one that asks for much. */
const MAX_HELD = 1000;
/** Approvals that wait in one session. */
const MAX_APPROVALS_PER_SESSION = 100;
/** How often an approved call may end with a question of the server and go on. */
const MAX_ROUNDS = 10;

export interface HeldCall {
  readonly request: AskRequest;
  readonly session: Session;
  /** The same for the same call of a session, and for no other. A hash: the arguments are only in the request. */
  readonly key: string;
  /** The key of an approval for the whole session. */
  readonly grant: string;
}

export interface HeldCallsOptions {
  readonly clock: Clock;
  /** How long a question is held, and how long an approval waits for its call. */
  readonly timeoutMs: () => number;
  /** The question went unanswered: its time or its place was up, or its session ended. */
  readonly onDropped: (request: AskRequest, why: "timeout" | "withdrawn") => void;
  /** Where approvals wait for callers that may come to another hub of the cluster. */
  readonly shared?: SharedPrincipals | undefined;
}

/** For one call, in however many rounds it is made. */
interface Approval {
  readonly until: number;
  /** How often the call has run and was to go on. */
  readonly rounds: number;
}

interface SessionCalls {
  /** By key. */
  readonly held: Map<string, HeldCall>;
  /** By the key of the call that may be made. */
  readonly allowed: Map<string, Approval>;
}

interface PassedCall {
  readonly session: Session;
  readonly key: string;
  readonly approval: Approval;
}

export class HeldCalls {
  readonly #options: HeldCallsOptions;
  /** By the id of the question, oldest first. */
  readonly #held = new Map<string, { readonly call: HeldCall; readonly stopTimer: () => void }>();
  /** Of each caller the ids of its questions, oldest first. */
  readonly #callers = new Map<string, Set<string>>();
  readonly #sessions = new Map<Session, SessionCalls>();
  /** For calls in progress: the approvals that let them through. */
  readonly #passed = new Map<string, PassedCall[]>();

  constructor(options: HeldCallsOptions) {
    this.#options = options;
  }

  /** Oldest first. */
  pending(): AskRequest[] {
    return [...this.#held.values()].map(({ call }) => call.request);
  }

  find(session: Session, key: string): HeldCall | undefined {
    return this.#sessions.get(session)?.held.get(key);
  }

  /** Whose call a held question is about. */
  sessionOf(id: string): Session | undefined {
    return this.#held.get(id)?.call.session;
  }

  hold(call: HeldCall): void {
    const { clock, timeoutMs } = this.#options;
    const caller = callerKey(call.session);
    const own = this.#callers.get(caller);
    const [oldest] = own !== undefined && own.size >= MAX_HELD_PER_CALLER ? own : [];
    if (oldest !== undefined) this.#drop(oldest, "timeout");
    else if (this.#held.size >= MAX_HELD) this.#dropOfMost();
    const { id } = call.request;
    const stopTimer = clock.after(timeoutMs(), () => this.#drop(id, "timeout"));
    this.#held.set(id, { call, stopTimer });
    this.#of(call.session).held.set(call.key, call);
    // Looked up again: what was dropped may have been its last.
    const ids = this.#callers.get(caller);
    if (ids === undefined) this.#callers.set(caller, new Set([id]));
    else ids.add(id);
  }

  /** Takes a question out, because it is answered. Undefined if it is not, or no longer, held. */
  release(id: string): HeldCall | undefined {
    const found = this.#held.get(id);
    if (found === undefined) return undefined;
    found.stopTimer();
    this.#held.delete(id);
    const caller = callerKey(found.call.session);
    const ids = this.#callers.get(caller);
    ids?.delete(id);
    if (ids?.size === 0) this.#callers.delete(caller);
    this.#sessions.get(found.call.session)?.held.delete(found.call.key);
    return found.call;
  }

  /** The next call with this key passes. */
  allow(session: Session, key: string, approval: Approval = this.#freshApproval()): void {
    if (session.closed) return;
    const { shared } = this.#options;
    if (shared !== undefined && session.sharedKey !== undefined)
      return session.tell(shared.allow(session, key, approval));
    const { allowed } = this.#of(session);
    allowed.delete(key);
    const [oldest] = allowed.size >= MAX_APPROVALS_PER_SESSION ? allowed.keys() : [];
    if (oldest !== undefined) allowed.delete(oldest);
    allowed.set(key, approval);
  }

  /** Whether an approval waits for this call, which uses it up. A promise only for callers of several hubs. */
  passes(session: Session, key: string, callId: string): boolean | Promise<boolean> {
    const { shared } = this.#options;
    if (shared !== undefined && session.sharedKey !== undefined) {
      return shared.take(session, key).then((found) => {
        if (found !== undefined) this.passed(session, key, callId, found);
        return found !== undefined;
      });
    }
    const allowed = this.#sessions.get(session)?.allowed;
    const approval = allowed?.get(key);
    allowed?.delete(key);
    if (approval === undefined || approval.until <= this.#options.clock.now()) return false;
    this.passed(session, key, callId, approval);
    return true;
  }

  /** An approval that was given for this call alone. */
  passed(session: Session, key: string, callId: string, approval: Approval = this.#freshApproval()): void {
    const approvals = this.#passed.get(callId);
    if (approvals === undefined) this.#passed.set(callId, [{ session, key, approval }]);
    else approvals.push({ session, key, approval });
  }

  /**
   * The approvals that let a call through apply to the next one like it: this one did not run, or has only begun. They last no
   * longer for it.
   * @param hasRun It ended with a question of the server, which is asked only so often.
   */
  restore(callId: string, hasRun: boolean): void {
    for (const { session, key, approval } of this.#passed.get(callId) ?? []) {
      const rounds = approval.rounds + (hasRun ? 1 : 0);
      const newer = this.#sessions.get(session)?.allowed.get(key);
      if (rounds <= MAX_ROUNDS && newer === undefined) this.allow(session, key, { until: approval.until, rounds });
    }
    this.#passed.delete(callId);
  }

  /** The call has run; what let it through is used up. */
  spend(callId: string): void {
    this.#passed.delete(callId);
  }

  #freshApproval(): Approval {
    return { until: this.#options.clock.now() + this.#options.timeoutMs(), rounds: 0 };
  }

  #of(session: Session): SessionCalls {
    const known = this.#sessions.get(session);
    if (known !== undefined) return known;
    const made: SessionCalls = { held: new Map(), allowed: new Map() };
    this.#sessions.set(session, made);
    session.closing.addEventListener("abort", () => this.#end(session, made), { once: true });
    return made;
  }

  #end(session: Session, { held }: SessionCalls): void {
    for (const { request } of [...held.values()]) this.#drop(request.id, "withdrawn");
    this.#sessions.delete(session);
  }

  #dropOfMost(): void {
    let most: ReadonlySet<string> = new Set();
    for (const ids of this.#callers.values()) if (ids.size > most.size) most = ids;
    const [oldest] = most;
    if (oldest !== undefined) this.#drop(oldest, "timeout");
  }

  #drop(id: string, why: "timeout" | "withdrawn"): void {
    const dropped = this.release(id);
    if (dropped !== undefined) this.#options.onDropped(dropped.request, why);
  }
}

/** A user may have several sessions; where the user is not known, the session is all that there is to go by. */
function callerKey({ user, id }: Session): string {
  return user === undefined ? `session ${id}` : `user ${user}`;
}
