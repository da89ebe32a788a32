/** Calls that wait for approval or are held for a later one, and approvals that last. */
import { hash, randomUUID } from "node:crypto";
import { resolve } from "node:path";
import type { Clock } from "../../base/clock.ts";
import type { Emitter } from "../../base/emitter.ts";
import {
  ASK_ANSWERS,
  type AskAnswer,
  type AskCallback,
  type AskOutcome,
  type AskRequest,
  type LastingAnswer,
  type Rule,
} from "../../model/decision.ts";
import { asToolcribError, ToolcribError } from "../../model/errors.ts";
import { canonicalJson, type JsonObject } from "../../model/json.ts";
import type { LoadedConfig } from "../../model/loaded-config.ts";
import type { SessionSources } from "../../sessions/session-parts.ts";
import type { Session } from "../../sessions/session.ts";
import type { AuditLog } from "../../telemetry/audit/log.ts";
import type { DecisionRecord } from "../../telemetry/audit/record.ts";
import type { SharedPrincipals } from "../cluster/shared-principals.ts";
import type { HubEvents } from "../hub-events.ts";
import { rememberAnswer } from "./config-policy.ts";

interface ApprovalsOptions {
  readonly clock: Clock;
  /** The current one: it may change while questions are open. */
  readonly config: () => LoadedConfig;
  readonly events: Emitter<HubEvents>;
  readonly audit: AuditLog;
  /** Answers for sessions that have no callback of their own. */
  readonly onAsk: AskCallback | undefined;
  readonly sessionSources: SessionSources;
  /** In a cluster: what callers were allowed, at whichever node. */
  readonly shared: SharedPrincipals | undefined;
}

/** Who answered, as far as that is known; absent when the time ran out or the question was withdrawn. */
export interface Answerer {
  readonly user: string | null;
  readonly door: string | null;
  /** The key of a caller who may answer for others only; absent for an operator. */
  readonly caller?: string;
}

/** Held calls stay in memory, and a person has to read them. */
const MAX_HELD_BYTES = 64 * 1024;

export interface Question extends Omit<AskRequest, "id" | "held" | "expiresAt" | "session"> {
  /** Of the definition: a later approval does not cover a definition that has changed meanwhile. */
  readonly fingerprint: string;
  /** For taint: the servers whose content was read. Approval covers these, and no server that is read later. */
  readonly sources?: readonly string[] | undefined;
}

interface Answered {
  readonly answer: AskOutcome;
  /** Who answered through `answer`: an operator. */
  readonly operator?: Answerer;
}

interface WaitingCall {
  readonly request: AskRequest;
  readonly session: Session;
  readonly settle: (answer: unknown, operator: Answerer) => void;
}

export class Approvals {
  readonly #options: ApprovalsOptions;
  readonly #waiting = new Map<string, WaitingCall>();
  readonly #held: HeldCalls;
  #told: Promise<void> | undefined;
  /** Answered with "always", and whether the config file says so too; it counts when it is next read. */
  readonly #always = new Map<string, { written: boolean }>();

  constructor(options: ApprovalsOptions) {
    this.#options = options;
    this.#held = new HeldCalls({
      clock: options.clock,
      timeoutMs: () => this.#timeoutMs,
      onDropped: (request, why) => this.#answered(request, why),
      shared: options.shared,
    });
  }

  /** Resolves when the other nodes of a cluster know of the last answer. */
  get told(): Promise<void> | undefined {
    return this.#told;
  }

  /** Calls that wait or are held, oldest first. */
  pending(): AskRequest[] {
    const waiting = [...this.#waiting.values()].map(({ request }) => request);
    return [...waiting, ...this.#held.pending()].toSorted((a, b) => Date.parse(a.expiresAt) - Date.parse(b.expiresAt));
  }

  /**
   * Answers a question from outside the session; only for an operator, whose "always" applies to everyone, and for
   * those whom an operator lets answer. False if it is not, or no longer, waiting or held; throws `denied` for one's own call.
   */
  answer(id: string, answer: AskAnswer, operator: Answerer = UNKNOWN_ANSWERER): boolean {
    const waiting = this.#waiting.get(id);
    const asking = waiting?.session ?? this.#held.sessionOf(id);
    if (asking !== undefined && isOwnCall(asking, operator)) throw ownCallError();
    waiting?.settle(answer, operator);
    if (waiting !== undefined) return true;
    const held = this.#held.release(id);
    if (held === undefined) return false;
    const { request, session, key, grants } = held;
    const known = knownAnswer(answer);
    this.#answered(request, known, operator);
    if (known === "once") this.#held.allow(session, key);
    // It is written down in the background; if that fails, the hub warns.
    else if (known !== "no")
      void this.#keep(session, grants, request, this.#canLast(request) ? lastingOf(known) : undefined);
    this.#told = session.telling;
    return true;
  }

  /**
   * Resolves when the call may go on; rejects with `denied` if it may not, or `cancelled` with the signal. Where no one can
   * be asked and calls of the session are held, the question is held and the call is refused.
   */
  async ask(session: Session, question: Question, signal: AbortSignal, onAsk?: AskCallback): Promise<void> {
    // Approval of a rule does not cover a changed definition or a tainted session: those ask for other reasons.
    const grants = reasonsOf(question).map((reason) => grantKey(reason, question));
    const isGranted = grants.every((grant) => session.granted.has(grant));
    if (isGranted || (this.#canLast(question) && this.#isAlways(question))) return;
    const callback = onAsk ?? session.onAsk ?? this.#options.onAsk;
    if (callback === undefined) refuseTooLarge(session, question);
    const key = callKey(question, grants);
    const passes = this.#held.passes(session, key, question.callId);
    if (passes === true || (passes !== false && (await passes))) return;
    if (callback === undefined) throw this.#hold(session, question, grants, key);

    const request = this.#request(session, question, false);
    const answered = this.#wait(session, request, callback, signal);
    this.#options.events.emit("ask", request);
    const { answer, operator } = await answered;
    const asked = callback === this.#options.onAsk ? UNKNOWN_ANSWERER : answererOf(session);
    const isUnanswered = answer === "timeout" || answer === "withdrawn" || signal.aborted;
    this.#answered(request, answer, isUnanswered ? undefined : (operator ?? asked));
    if (signal.aborted || answer === "withdrawn")
      throw new ToolcribError("cancelled", "The call was cancelled while it waited for an answer.");
    if (answer === "no" || answer === "timeout") throw refusedError(request, session.owner);
    if (answer === "once") return this.#held.passed(session, key, question.callId);
    // Only an owner may change what applies to everyone.
    const mayLast =
      this.#canLast(request) && (session.decidesForAll || operator !== undefined || callback === this.#options.onAsk);
    await this.#keep(session, grants, request, mayLast ? lastingOf(answer) : undefined);
  }

  /**
   * Only a rule that is written down can be given an exception that lasts, and only for what is the hub's: the next session
   * may bring something else under the same name.
   */
  #canLast({ lasting, rule, rules, origin }: Omit<Question, "fingerprint">): boolean {
    const isWritten = rules.some(({ level }) => level !== "session") && lasting?.always !== undefined;
    return rule.list === "ask" && isWritten && this.#options.sessionSources.get(origin.source) === undefined;
  }

  /**
   * A call that was approved once did not run, or ended with a question of the server: the same call passes
   * without a further approval, for as long as that one lasts, and in a few rounds at most.
   */
  restore(callId: string, { hasRun = false }: { readonly hasRun?: boolean } = {}): void {
    this.#held.restore(callId, hasRun);
  }

  /** The call has run: its approval is used up. */
  spend(callId: string): void {
    this.#held.spend(callId);
  }

  #isAlways(question: Question): boolean {
    return Object.values(question.lasting ?? {}).some((entry) => this.#always.has(lastingKey(question, entry)));
  }

  /** @param lasting Absent where the answer is for the session only. */
  async #keep(
    session: Session,
    grants: readonly string[],
    request: AskRequest,
    lasting: LastingAnswer | undefined,
  ): Promise<void> {
    const exception = lasting && request.lasting?.[lasting];
    if (exception === undefined) {
      for (const grant of grants) {
        session.granted.add(grant);
        if (this.#options.shared !== undefined) session.tell(this.#options.shared.grant(session, grant));
      }
      return;
    }
    const entry = { written: false };
    this.#always.set(lastingKey(request, exception), entry);
    entry.written = await this.#remember(request, exception);
  }

  /** Approvals that the config file has by now. */
  persistedApprovals(): string[] {
    return [...this.#always].flatMap(([lasting, { written }]) => (written ? [lasting] : []));
  }

  /** The file was read after these were written down: from now on it alone says what needs no asking. */
  dropPersisted(lasting: readonly string[]): void {
    for (const each of lasting) this.#always.delete(each);
  }

  get #timeoutMs(): number {
    return this.#options.config().config.tools.askTimeout;
  }

  /** Writes an "always" into the config, so that it outlives the hub. False if that failed, which does not deny the call. */
  async #remember(request: AskRequest, exception: string): Promise<boolean> {
    const { config, events } = this.#options;
    try {
      await rememberAnswer(config(), request, exception);
      return true;
    } catch (error) {
      const message = `The answer for ${request.name} could not be written down: ${asToolcribError(error).message}`;
      events.emit("warning", { message });
      return false;
    }
  }

  /** @param by Absent when the time ran out or the question was withdrawn: then the call does not run either. */
  #answered(request: AskRequest, answer: AskOutcome, by?: Answerer): void {
    const { clock, events, audit } = this.#options;
    events.emit("answer", { request, answer });
    const { callId, session, name, origin, rule } = request;
    audit.decision({
      time: new Date(clock.now()).toISOString(),
      callId,
      session: session.id,
      door: session.door,
      role: session.role ?? null,
      user: session.user ?? null,
      client: session.client && { name: session.client.name, version: session.client.version },
      kind: "ask",
      name,
      origin,
      decision: verdictOf(answer),
      rule,
      answer,
      ...(by === undefined ? {} : { answeredBy: by.user, answeredThrough: by.door }),
    });
  }

  #hold(session: Session, question: Question, grants: readonly string[], key: string): ToolcribError {
    if (session.holdsCalls !== true || session.closed) return noApproverError(question, session.owner);
    const known = this.#held.find(session, key)?.request;
    if (known !== undefined) return heldError(known, session.owner);
    const request = this.#request(session, question, true);
    this.#held.hold({ request, session, key, grants });
    this.#options.events.emit("ask", request);
    return heldError(request, session.owner);
  }

  #request(
    session: Session,
    { fingerprint: _fingerprint, sources: _sources, ...question }: Question,
    held: boolean,
  ): AskRequest {
    return {
      ...question,
      id: randomUUID(),
      held,
      session: {
        id: session.id,
        door: session.door,
        role: session.role,
        user: session.user,
        client: session.clientInfo,
        conversation: session.conversation,
        roots: this.#rootsOf(session),
      },
      expiresAt: new Date(this.#options.clock.now() + this.#timeoutMs).toISOString(),
    };
  }

  /** Its own folder, else the one that its program runs in, else the config's. */
  #rootsOf({ workspaceDir, clientInfo }: Session): string[] | undefined {
    const { config, baseDir } = this.#options.config();
    const folder = workspaceDir ?? clientInfo?.cwd ?? (config.workspaceDir && resolve(baseDir, config.workspaceDir));
    return folder === undefined ? undefined : [folder];
  }

  /** The first of: the callback's answer, an answer from outside, the timeout, the caller giving up. */
  #wait(session: Session, request: AskRequest, callback: AskCallback, signal: AbortSignal): Promise<Answered> {
    const moot = new AbortController();
    return new Promise<Answered>((resolve) => {
      const giveUp = (): void => resolve({ answer: "withdrawn" });
      const timeUp = (): void => resolve({ answer: "timeout" });
      const stopTimer = this.#options.clock.after(this.#timeoutMs, timeUp);
      const settle: WaitingCall["settle"] = (answer, operator) => resolve({ answer: knownAnswer(answer), operator });
      this.#waiting.set(request.id, { request, session, settle });
      signal.addEventListener("abort", giveUp, { once: true });
      moot.signal.addEventListener("abort", () => {
        stopTimer();
        signal.removeEventListener("abort", giveUp);
        this.#waiting.delete(request.id);
      });
      new Promise<unknown>((answered) => answered(callback(request, moot.signal))).then(
        (answer) => resolve({ answer: knownAnswer(answer) }),
        () => resolve({ answer: signal.aborted ? "withdrawn" : "no" }),
      );
    }).finally(() => moot.abort());
  }
}

const UNKNOWN_ANSWERER: Answerer = { user: null, door: null };

/** A session's own client was asked. */
function answererOf({ user, door }: Session): Answerer {
  return { user: user ?? null, door };
}

/** The same credentials, or others of the same user. */
function isOwnCall(session: Session, { caller, user }: Answerer): boolean {
  return caller !== undefined && (session.caller === caller || (user !== null && session.user === user));
}

function ownCallError(): ToolcribError {
  return new ToolcribError("denied", "This call is your own, and no caller approves its own calls.", {
    hint: "It needs the answer of another user, or of an operator with the scope admin.",
  });
}

/** The subject of an approval for everyone: a resource can have the name of a tool, and a name can go to another server. */
function lastingKey({ kind, name, origin }: Pick<AskRequest, "kind" | "name" | "origin">, exception: string): string {
  return JSON.stringify([kind, name, origin.source, exception]);
}

function lastingOf(answer: AskOutcome): LastingAnswer | undefined {
  return answer === "always" || answer === "always-values" || answer === "always-call" ? answer : undefined;
}

/** Programs without types answer too: an unknown answer is a no. */
function knownAnswer(answer: unknown): AskAnswer {
  return ASK_ANSWERS.find((known) => known === answer) ?? "no";
}

/** Approval for the session covers what was shown: not another source's tool of the same name, nor a changed definition. */
function grantKey(reason: string, { kind, name, origin, fingerprint }: Question): string {
  return JSON.stringify([reason, kind, name, origin.source, fingerprint]);
}

/**
 * A changed definition asks with its fingerprint as the pattern, so that the next change asks again; a tainted session asks for
 * each server that it has read from.
 */
function reasonsOf({ rule: { list, pattern }, rules, arguments: args, sources }: Question): string[] {
  if (sources !== undefined) return sources.map((source) => `${list} ${source}`);
  if (list === "ask") return [...new Set(rules.map((each) => askReason(each, args)))];
  return [list === "pins" ? `pins ${pattern}` : list];
}

/** A yes to a rule that looks at arguments is one to the values that they had. */
function askReason({ list, pattern, arguments: looked }: Rule, args: Readonly<JsonObject>): string {
  if (looked === undefined) return list;
  const values = looked.map((name) => [name, args[/^[^.[]*/.exec(name)?.[0] ?? ""]]);
  return `${list} ${pattern} ${hash("sha256", canonicalJson(values))}`;
}

/** The same for calls that differ in nothing that was asked about. */
function callKey({ arguments: args }: Question, grants: readonly string[]): string {
  return hash("sha256", canonicalJson([grants, args]));
}

/**
 * Models read these texts, at every door. None names a command, an id or a line of the config that would lift the refusal:
 * a model that knows how may do it. Which rule asks, and where it is, is for the user who runs the hub.
 */
function noApproverError({ name, rule, reason }: Question, owner: boolean): ToolcribError {
  const why = owner ? reason : `${name} needs approval.`;
  return new ToolcribError("denied", `${why} No one is connected who can approve it.`, {
    hint: owner
      ? "A person has to approve it: on a terminal, or through the program's onAsk."
      : "Ask whoever runs the hub.",
    ...(owner ? { details: { rule } } : {}),
  });
}

/** Only what could be held otherwise: where nothing is, that is the reason to give. */
function refuseTooLarge(session: Session, { name, arguments: args, reason }: Question): void {
  if (session.holdsCalls !== true) return;
  const bytes = Buffer.byteLength(JSON.stringify([name, args]));
  if (bytes <= MAX_HELD_BYTES) return;
  const shown = name.length > MAX_NAME_LENGTH ? `${name.slice(0, MAX_NAME_LENGTH).toWellFormed()}…` : name;
  const why = session.owner && shown === name ? reason : `${shown} needs approval.`;
  throw new ToolcribError("denied", `${why} With ${bytes} bytes it is too large to be shown for approval.`, {
    hint: `At most ${MAX_HELD_BYTES} bytes of JSON can wait for approval. Call it with less.`,
  });
}

const MAX_NAME_LENGTH = 200;

function heldError({ name, reason, rule }: AskRequest, owner: boolean): ToolcribError {
  const why = owner ? reason : `${name} needs approval.`;
  return new ToolcribError("denied", `${why} The operator was asked.`, {
    hint: "Make the same call again once it is approved.",
    // Programs tell by `pendingApproval` that the same call can pass later.
    details: { ...(owner ? { rule } : {}), pendingApproval: true },
  });
}

function refusedError({ name, rule, expiresAt }: AskRequest, owner: boolean): ToolcribError {
  return new ToolcribError(
    "denied",
    `The answer to whether ${name} may be used was no, or none came until ${expiresAt}.`,
    owner ? { details: { rule } } : {},
  );
}

function verdictOf(answer: AskOutcome): DecisionRecord["decision"] {
  if (answer === "withdrawn") return answer;
  return answer === "no" || answer === "timeout" ? "deny" : "allow";
}

/** Above this the oldest of the caller go first. */
const MAX_HELD_PER_CALLER = 20;
/** Above this the oldest of the caller with the most go first: a caller that asks for little loses nothing to one that asks for much. */
const MAX_HELD = 1000;
/** Approvals that wait in one session. */
const MAX_APPROVALS_PER_SESSION = 100;
/** How often an approved call may end with a question of the server and go on. */
const MAX_ROUNDS = 10;

interface HeldCall {
  readonly request: AskRequest;
  readonly session: Session;
  /** The same for the same call of a session, and for no other. A hash: the arguments are only in the request. */
  readonly key: string;
  /** The key of an approval for the whole session. */
  readonly grants: readonly string[];
}

interface HeldCallsOptions {
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

/** Calls that were refused because no one could be asked, kept for a later approval, and approvals that wait for their call. */
class HeldCalls {
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
