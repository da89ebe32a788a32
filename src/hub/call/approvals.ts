/** Calls that wait for approval, and approvals that last. */
import { hash, randomUUID } from "node:crypto";
import type { Clock } from "../../base/clock.ts";
import type { Emitter } from "../../base/emitter.ts";
import type { AskAnswer, AskCallback, AskOutcome, AskRequest } from "../../model/decision.ts";
import { asToolcribError, ToolcribError } from "../../model/errors.ts";
import { canonicalJson } from "../../model/json.ts";
import type { LoadedConfig } from "../../model/loaded-config.ts";
import { exactPattern } from "../../policy/pattern.ts";
import type { SessionSources } from "../../sessions/session-parts.ts";
import type { Session } from "../../sessions/session.ts";
import type { AuditLog } from "../../telemetry/audit/log.ts";
import type { DecisionRecord } from "../../telemetry/audit/record.ts";
import type { SharedPrincipals } from "../cluster/shared-principals.ts";
import type { HubEvents } from "../hub-events.ts";
import { rememberAnswer } from "./config-policy.ts";
import { HeldCalls } from "./held-calls.ts";

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
const ANSWERS: readonly AskAnswer[] = ["once", "session", "always", "no"];

export interface Question extends Omit<AskRequest, "id" | "held" | "expiresAt" | "session"> {
  /** Of the definition: a later approval does not cover a definition that has changed meanwhile. */
  readonly fingerprint: string;
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
    const { request, session, key, grant } = held;
    const known = knownAnswer(answer);
    this.#answered(request, known, operator);
    if (known === "once") this.#held.allow(session, key);
    // It is written down in the background; if that fails, the hub warns.
    else if (known !== "no") void this.#keep(session, grant, request, known === "always" && this.#canLast(request));
    this.#told = session.telling;
    return true;
  }

  /**
   * Resolves when the call may go on; rejects with `denied` if it may not, or `cancelled` with the signal. Where no one can
   * be asked and calls of the session are held, the question is held and the call is refused.
   */
  async ask(session: Session, question: Question, signal: AbortSignal, onAsk?: AskCallback): Promise<void> {
    // Approval of a rule does not cover a changed definition or a tainted session: those ask for other reasons.
    // A changed definition asks with its fingerprint as the pattern, so that the next change asks again.
    const reason = question.rule.list === "pins" ? `pins ${question.rule.pattern}` : question.rule.list;
    const grant = grantKey(reason, question);
    if (session.granted.has(grant) || (this.#canLast(question) && this.#always.has(lastingKey(question)))) return;
    const callback = onAsk ?? session.onAsk ?? this.#options.onAsk;
    if (callback === undefined) refuseTooLarge(session, question);
    const key = callKey(question, grant);
    const passes = this.#held.passes(session, key, question.callId);
    if (passes === true || (passes !== false && (await passes))) return;
    if (callback === undefined) throw this.#hold(session, question, grant, key);

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
    await this.#keep(session, grant, request, answer === "always" && mayLast);
  }

  /**
   * Only a rule that is written down can be given an exception that lasts, and only for what is the hub's: the next session
   * may bring something else under the same name.
   */
  #canLast({ kind, name, rule, rules, origin }: Omit<Question, "fingerprint">): boolean {
    const isWritten = rules.some(({ level }) => level !== "session") && exactPattern(kind, name) !== undefined;
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

  async #keep(session: Session, grant: string, request: AskRequest, forEverybody: boolean): Promise<void> {
    if (!forEverybody) {
      session.granted.add(grant);
      if (this.#options.shared !== undefined) session.tell(this.#options.shared.grant(session, grant));
      return;
    }
    const entry = { written: false };
    this.#always.set(lastingKey(request), entry);
    entry.written = await this.#remember(request);
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
  async #remember(request: AskRequest): Promise<boolean> {
    const { config, events } = this.#options;
    try {
      await rememberAnswer(config(), request);
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
      kind: "ask",
      name,
      origin,
      decision: verdictOf(answer),
      rule,
      answer,
      ...(by === undefined ? {} : { answeredBy: by.user, answeredThrough: by.door }),
    });
  }

  #hold(session: Session, question: Question, grant: string, key: string): ToolcribError {
    if (session.holdsCalls !== true || session.closed) return noApproverError(question, session.owner);
    const known = this.#held.find(session, key)?.request;
    if (known !== undefined) return heldError(known, session.owner);
    const request = this.#request(session, question, true);
    this.#held.hold({ request, session, key, grant });
    this.#options.events.emit("ask", request);
    return heldError(request, session.owner);
  }

  #request(session: Session, { fingerprint: _fingerprint, ...question }: Question, held: boolean): AskRequest {
    return {
      ...question,
      id: randomUUID(),
      held,
      session: {
        id: session.id,
        door: session.door,
        role: session.role,
        user: session.user,
      },
      expiresAt: new Date(this.#options.clock.now() + this.#timeoutMs).toISOString(),
    };
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
function lastingKey({ kind, name, origin }: Pick<AskRequest, "kind" | "name" | "origin">): string {
  return JSON.stringify([kind, name, origin.source]);
}

/** Programs without types answer too: an unknown answer is a no. */
function knownAnswer(answer: unknown): AskAnswer {
  return ANSWERS.find((known) => known === answer) ?? "no";
}

/** Approval for the session covers what was shown: not another source's tool of the same name, nor a changed definition. */
function grantKey(reason: string, { kind, name, origin, fingerprint }: Question): string {
  return JSON.stringify([reason, kind, name, origin.source, fingerprint]);
}

/** The same for calls that differ in nothing that was asked about. */
function callKey({ arguments: args }: Question, grant: string): string {
  return hash("sha256", canonicalJson([grant, args]));
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
