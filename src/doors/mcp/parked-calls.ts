/**
 * Calls of modern clients that a server's question interrupts. A legacy server asks in the middle of a call and waits; a
 * modern client learns of it from the result `input_required` and sends its request again with the answers. In between
 * the call waits here, under a state that only the same caller can send back, once, with the same request.
 */
import { randomBytes } from "node:crypto";
import { CancelController, type CancelSignal } from "../../base/async.ts";
import { canonicalJson, isJsonObject, type JsonObject } from "../../model/json.ts";
import type { Clock } from "../../base/clock.ts";
import { ToolcribError } from "../../model/errors.ts";
import { METHOD_NOT_FOUND, MISSING_CAPABILITY, type RpcError } from "../../model/protocol.ts";
import type { ClientSide } from "../../model/source.ts";
import type { Session } from "../../sessions/session.ts";
import { rpcRefusal } from "../../upstream/rpc-error.ts";
import { type Encoded, invalidParams, type MessageSink, type ProgressToken } from "./rpc-messages.ts";

/** How long an answer may take; the call's own timeouts apply as well. */
const ANSWER_TIMEOUT_MS = 10 * 60_000;
const MAX_PARKED_CALLS = 1000;
const QUESTION_BATCH_MS = 20;
const STATE_PREFIX = "toolcrib.";

/** Identifies a parked call and its retries: a state is useless to other callers and for other requests. */
interface RoundKey {
  readonly caller: string;
  readonly method: string;
  readonly params: JsonObject;
}

/** The caller's session. */
type Principal = Pick<Session, "owner">;

function isSameRound(a: RoundKey, b: RoundKey): boolean {
  return a.caller === b.caller && roundSubject(a) === roundSubject(b);
}

function roundSubject({ method, params: { name, uri, arguments: args } }: RoundKey): string {
  return canonicalJson([method, name ?? null, uri ?? null, args ?? null]);
}

interface Question {
  readonly method: string;
  readonly params: JsonObject;
  readonly resolve: (answer: JsonObject) => void;
}

/** The questions that must be answered before the call can continue. */
export interface InputRequired {
  readonly inputRequests: JsonObject;
  readonly requestState: string;
}

/** The parts of a call that belong to one of its requests. */
interface Round {
  readonly sink: MessageSink;
  readonly progressToken: ProgressToken | undefined;
}

function nothing(): void {}

/** While no request waits for the call, its messages have no place to go. */
const NO_ROUND: Round = { sink: { send: nothing }, progressToken: undefined };

/** One call with all its rounds. */
export class ParkableCall {
  readonly client: ClientSide;
  readonly #key: RoundKey;
  readonly #rounds: ParkedCalls;
  readonly #questions = new Map<string, Question>();
  readonly #missing = new Set<string>();
  readonly #controller = new CancelController();
  #outcome: Promise<Encoded> | undefined;
  #round: Round;
  #nextKey = 1;
  #wake = nothing;
  #stopTimer = nothing;
  #exhale = nothing;

  /** @param principal The same for all calls of one caller: whichever of them is asked, the same client answers. */
  constructor(rounds: ParkedCalls, key: RoundKey, principal: Principal, capabilities: JsonObject, round: Round) {
    this.#rounds = rounds;
    this.#key = key;
    this.#round = round;
    this.client = this.#clientSide(principal, capabilities);
  }

  get signal(): CancelSignal {
    return this.#controller;
  }

  /** Where the messages of the round that runs now go. */
  readonly sink: MessageSink = { send: (message) => this.#round.sink.send(message) };

  /** Of the round that runs now. */
  get progressToken(): ProgressToken | undefined {
    return this.#round.progressToken;
  }

  /** Runs until the call ends or needs an answer. The request's own signal can end it. */
  async run(signal: CancelSignal, start?: () => Promise<Encoded>): Promise<Encoded | InputRequired> {
    const giveUp = (): void => this.#controller.abort();
    if (signal.aborted) giveUp();
    signal.addEventListener("abort", giveUp, { once: true });
    try {
      this.#outcome ??= start?.();
      for (;;) {
        const asked = new Promise<undefined>((resolve) => {
          // Not assigned where it is written: V8 allocates such a function in the old generation, which would hold the call.
          const wake = (): void => resolve(undefined);
          this.#wake = wake;
          // Nothing new is asked if a retry left out what was asked before.
          if (this.#questions.size > 0) resolve(undefined);
        });
        const ended = await Promise.race([this.#outcome, asked]);
        if (ended !== undefined) return ended;
        await this.#breath();
        // A server may take back what it asked, or end the call without an answer to it.
        if (this.#questions.size > 0) return this.#park();
      }
    } finally {
      this.#wake = nothing;
      signal.removeEventListener("abort", giveUp);
    }
  }

  /** Resumes the call for a retry with answers. */
  resume(key: RoundKey, responses: JsonObject, round: Round): void {
    if (!isSameRound(key, this.#key)) throw unknownState();
    this.#stopTimer();
    this.#round = round;
    for (const [name, question] of [...this.#questions]) {
      const given = responses[name];
      if (!isJsonObject(given)) continue;
      this.#questions.delete(name);
      question.resolve(given);
    }
  }

  end(): void {
    this.#controller.abort();
  }

  /**
   * Waits briefly, because a server that asks several questions sends them in a few writes. Once one was refused, the server is
   * about to give up, and the others are sent at once.
   */
  #breath(): Promise<void> {
    if (this.#missing.size > 0) return new Promise((resolve) => setImmediate(resolve));
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, QUESTION_BATCH_MS);
      this.#exhale = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  #park(): InputRequired {
    const state = `${STATE_PREFIX}${this.#rounds.newId()}`;
    this.#stopTimer = this.#rounds.park(state, this);
    this.#round = NO_ROUND;
    const asked = [...this.#questions].map(([key, { method, params }]) => [key, { method, params }] as const);
    return { inputRequests: Object.fromEntries(asked), requestState: state };
  }

  /** The capabilities that a server asked for and the client did not declare; probably why the call failed. */
  missingCapability(): RpcError | undefined {
    if (this.#missing.size === 0) return undefined;
    const names = [...this.#missing];
    return {
      code: MISSING_CAPABILITY,
      message: `The client must declare ${names.join(" and ")} for this.`,
      data: { requiredCapabilities: Object.fromEntries(names.map((name) => [name, {}])) },
    };
  }

  #clientSide(key: Principal, capabilities: JsonObject): ClientSide {
    return {
      key,
      isWaiting: () => this.#questions.size > 0,
      capabilities,
      rootsOnRequest: !key.owner,
      listRoots: ({ signal }) => this.#ask("roots", "roots/list", {}, signal),
      sample: (params, { signal }) => this.#ask("sampling", "sampling/createMessage", params, signal),
      elicit: (params, { signal }) => this.#ask("elicitation", "elicitation/create", params, signal),
    };
  }

  async #ask(capability: string, method: string, params: JsonObject, signal: AbortSignal): Promise<JsonObject> {
    if (!isJsonObject(this.client.capabilities[capability])) {
      // Servers ask for roots when they start, during any call: no call fails without them.
      if (capability !== "roots") this.#missing.add(capability);
      this.#exhale();
      throw rpcRefusal(METHOD_NOT_FOUND, `The client does not answer ${method}.`);
    }
    return new Promise((resolve, reject) => {
      const key = `${capability}-${this.#nextKey++}`;
      const giveUp = (): void => {
        this.#questions.delete(key);
        reject(new ToolcribError("cancelled", `${method} is no longer needed.`));
      };
      if (signal.aborted) return giveUp();
      signal.addEventListener("abort", giveUp, { once: true });
      this.#questions.set(key, {
        method,
        params,
        resolve: (answer) => {
          signal.removeEventListener("abort", giveUp);
          resolve(answer);
        },
      });
      this.#wake();
    });
  }
}

export class ParkedCalls {
  readonly #clock: Clock;
  readonly #parked = new Map<string, ParkableCall>();
  /** An unguessable id. */
  readonly newId: () => string;

  constructor(clock: Clock, newId: () => string = () => randomBytes(24).toString("base64url")) {
    this.#clock = clock;
    this.newId = newId;
  }

  /** Undefined for a state that was not made by Toolcrib. */
  static idOf(state: unknown): string | undefined {
    return ParkedCalls.owns(state) ? state.slice(STATE_PREFIX.length) : undefined;
  }

  /** Whether a state was made here; others are from servers. */
  static owns(state: unknown): state is string {
    return typeof state === "string" && state.startsWith(STATE_PREFIX);
  }

  /** The call that waits under this state, which is used up by it. Throws if there is none, or not for this request. */
  take(state: string, key: RoundKey, responses: JsonObject, round: Round): ParkableCall {
    const call = this.#parked.get(state);
    if (call === undefined) throw unknownState();
    call.resume(key, responses, round);
    this.#parked.delete(state);
    return call;
  }

  /** Keeps a call until it is resumed. The returned function stops its timeout. */
  park(state: string, call: ParkableCall): () => void {
    const [oldest] = this.#parked;
    if (oldest !== undefined && this.#parked.size >= MAX_PARKED_CALLS) this.#drop(oldest[0]);
    this.#parked.set(state, call);
    return this.#clock.after(ANSWER_TIMEOUT_MS, () => this.#drop(state));
  }

  close(): void {
    for (const state of [...this.#parked.keys()]) this.#drop(state);
  }

  #drop(state: string): void {
    const call = this.#parked.get(state);
    this.#parked.delete(state);
    call?.end();
  }
}

function unknownState(): ToolcribError {
  return invalidParams(
    "The request state is unknown, has expired or belongs to another request. A tool that was called may have begun: see what it did before you start again without the state.",
  );
}
