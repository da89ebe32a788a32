/** Calls that wait for a yes, and the yeses that last. */
import { randomUUID } from "node:crypto";
import type { AskAnswer, AskCallback, AskRequest } from "../model/ask.ts";
import type { Clock } from "../model/clock.ts";
import { ToolcribError } from "../model/errors.ts";
import type { Session } from "../sessions/session.ts";

export interface ApprovalsOptions {
  readonly clock: Clock;
  readonly timeoutMs: number;
  /** Answers for sessions that have no callback of their own. */
  readonly onAsk?: AskCallback | undefined;
  /** Writes an "always" down, so that it outlives the hub. What it throws is a warning, not a no. */
  readonly remember: (request: AskRequest) => Promise<void>;
  readonly onAsked: (request: AskRequest) => void;
  /** `timeout` and what is no answer at all count as no. */
  readonly onAnswered: (request: AskRequest, answer: AskAnswer | "timeout") => void;
}

const ANSWERS: readonly AskAnswer[] = ["once", "session", "always", "no"];

export type Question = Omit<AskRequest, "id" | "expiresAt" | "session">;

interface Pending {
  readonly request: AskRequest;
  readonly settle: (answer: unknown) => void;
}

export class Approvals {
  readonly #options: ApprovalsOptions;
  readonly #pending = new Map<string, Pending>();
  /** Names answered with "always"; the config file says so too, but it is read at the next start only. */
  readonly #always = new Set<string>();

  constructor(options: ApprovalsOptions) {
    this.#options = options;
  }

  /** What is waiting, oldest first. */
  pending(): AskRequest[] {
    return [...this.#pending.values()].map(({ request }) => request);
  }

  /** Answers a question from outside the session. False if it is not, or no longer, waiting. */
  answer(id: string, answer: AskAnswer): boolean {
    const pending = this.#pending.get(id);
    pending?.settle(answer);
    return pending !== undefined;
  }

  /** Resolves when the call may go on; rejects with `denied` if it may not, or `cancelled` with the signal. */
  async ask(session: Session, question: Question, signal: AbortSignal): Promise<void> {
    // A yes to a rule is none to a changed definition or to a tainted session: those ask for other reasons.
    // A changed definition asks with its fingerprint as the pattern, so that the next change asks again.
    const reason = question.rule.list === "pins" ? `pins ${question.rule.pattern}` : question.rule.list;
    const grant = `${reason} ${question.name}`;
    const lasts = question.rule.list === "ask";
    if (session.granted.has(grant) || (lasts && this.#always.has(question.name))) return;
    const callback = session.onAsk ?? this.#options.onAsk;
    if (callback === undefined) throw nobodyToAsk(question);

    const request = this.#request(session, question);
    const answered = this.#wait(request, callback, signal);
    this.#options.onAsked(request);
    const answer = await answered;
    this.#options.onAnswered(request, answer);
    if (signal.aborted) throw new ToolcribError("cancelled", "The call was cancelled while it waited for an answer.");
    if (answer === "no" || answer === "timeout") throw refused(request);
    // Only an owner may change what holds for everybody.
    const mayLast = lasts && (session.owner || callback === this.#options.onAsk);
    if (answer === "session" || (answer === "always" && !mayLast)) session.granted.add(grant);
    else if (answer === "always") {
      this.#always.add(request.name);
      await this.#options.remember(request);
    }
  }

  #request(session: Session, question: Question): AskRequest {
    return {
      ...question,
      id: randomUUID(),
      session: {
        id: session.id,
        door: session.door,
        ...(session.role === undefined ? {} : { role: session.role }),
        ...(session.user === undefined ? {} : { user: session.user }),
      },
      expiresAt: new Date(this.#options.clock.now() + this.#options.timeoutMs).toISOString(),
    };
  }

  /** The first of: the callback's answer, an answer from outside, the timeout, the caller giving up. */
  #wait(request: AskRequest, callback: AskCallback, signal: AbortSignal): Promise<AskAnswer | "timeout"> {
    const moot = new AbortController();
    return new Promise<AskAnswer | "timeout">((resolve) => {
      const giveUp = (): void => resolve("no");
      const stopTimer = this.#options.clock.after(this.#options.timeoutMs, () => resolve("timeout"));
      // Programs without types answer too: only a yes that is one of the known ones is a yes.
      const settle = (answer: unknown): void => resolve(ANSWERS.find((known) => known === answer) ?? "no");
      this.#pending.set(request.id, { request, settle });
      signal.addEventListener("abort", giveUp, { once: true });
      moot.signal.addEventListener("abort", () => {
        stopTimer();
        signal.removeEventListener("abort", giveUp);
        this.#pending.delete(request.id);
      });
      new Promise<unknown>((answered) => answered(callback(request, moot.signal))).then(settle, giveUp);
    }).finally(() => moot.abort());
  }
}

const COMMANDS: Readonly<Record<string, string>> = { tool: "call", prompt: "prompt", resource: "read" };

function nobodyToAsk({ kind, name, rule, reason }: Question): ToolcribError {
  const exception =
    rule.list === "ask" ? ` To allow it for good, add "!${name}" to the ask list in ${rule.where}.` : "";
  return new ToolcribError("denied", `${reason} There is nobody to ask.`, {
    hint: `Run \`toolcrib ${COMMANDS[kind] ?? "call"} ${name}\` on a terminal to be asked, or give the hub an onAsk callback.${exception}`,
    details: { rule },
  });
}

function refused({ name, rule, expiresAt }: AskRequest): ToolcribError {
  return new ToolcribError(
    "denied",
    `The answer to whether ${name} may be used was no, or none came until ${expiresAt}.`,
    {
      details: { rule },
    },
  );
}
