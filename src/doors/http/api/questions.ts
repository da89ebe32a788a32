/** Questions of servers while a call of REST or the WebSocket runs: its caller answers them, and no one else. */
import { randomUUID } from "node:crypto";
import type { CheckedInput } from "../../../contract/operations.ts";
import type { Question } from "../../../contract/activity-schemas.ts";
import type { HubEvent } from "../../../contract/websocket.ts";
import { type Caller, identityOf } from "../../../model/caller.ts";
import { ToolcribError } from "../../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../../model/json.ts";
import { INVALID_PARAMS, INVALID_REQUEST } from "../../../model/protocol.ts";
import type { ClientSide, ServerRequestContext } from "../../../model/source.ts";
import { rpcRefusal } from "../../../upstream/rpc-error.ts";
import type { Session } from "../../../sessions/session.ts";

/** Sends an event to the connection of one session alone. */
export type Notify = (event: HubEvent<"question.asked" | "question.closed" | "resource.updated">, to: string) => void;

/** Who a request is from. */
export interface Requester {
  readonly caller: Caller;
  readonly session: Session;
  /** The session of the connection, if the request names another one. */
  readonly asker?: Session;
}

/** The session of the connection that sent a request, whichever session the request names. */
export function receiverOf({ asker, session }: Requester): string {
  return (asker ?? session).id;
}

/** A server may ask several things at once, and no person answers more than a few. */
const MAX_OPEN_PER_CALLER = 32;
/** MCP's code for a person who refused a request to a model. */
const SAMPLING_REFUSED = -1;

type Answer = Omit<CheckedInput<"answerQuestion">, "questionId">;
type Asked = Pick<Question, "kind" | "message" | "schema" | "url" | "sampling">;

interface OpenQuestion {
  readonly question: Question;
  readonly identity: string;
  readonly to: string;
  readonly resolve: (answer: Answer) => void;
}

export class Questions {
  readonly #open = new Map<string, OpenQuestion>();
  readonly #notify: Notify;

  constructor(notify: Notify) {
    this.#notify = notify;
  }

  /** Of a call whose caller answers; `name` is what is called. */
  client(context: Requester, name: string): ClientSide {
    const { session } = context;
    const ask = (asked: Asked, by: ServerRequestContext): Promise<Answer> => this.#ask(context, name, asked, by);
    return {
      ...session.client,
      // Another than that of calls that answer nothing: a server that asks must not mean one of those.
      key: `questions ${session.id}`,
      capabilities: { ...session.client.capabilities, elicitation: { form: {}, url: {} }, sampling: {} },
      elicit: async (params, by) => toElicitResult(await ask(elicitation(params), by)),
      sample: async (params, by) => toSample(await ask({ kind: "sampling", message: "", sampling: params }, by)),
    };
  }

  of(caller: Caller): Question[] {
    const identity = identityOf(caller);
    return [...this.#open.values()].flatMap((open) => (open.identity === identity ? [open.question] : []));
  }

  answer(caller: Caller, { questionId, ...answer }: CheckedInput<"answerQuestion">): void {
    const open = this.#open.get(questionId);
    if (open === undefined || open.identity !== identityOf(caller)) {
      throw new ToolcribError("not_found", `No question ${questionId} of this caller waits for an answer.`, {
        hint: "It may have been answered, or its call has ended.",
      });
    }
    const { kind } = open.question;
    const needed = kind === "form" ? "content" : kind === "sampling" ? "text" : undefined;
    if (answer.action === "accept" && needed !== undefined && answer[needed] === undefined)
      throw new ToolcribError("invalid_arguments", `${needed}: is missing.`);
    this.#close(questionId, answer.action);
    open.resolve(answer);
  }

  #ask(context: Requester, name: string, asked: Asked, { server, signal }: ServerRequestContext): Promise<Answer> {
    const identity = identityOf(context.caller);
    const own = [...this.#open.values()].filter((open) => open.identity === identity);
    if (own.length >= MAX_OPEN_PER_CALLER)
      throw rpcRefusal(INVALID_REQUEST, `${MAX_OPEN_PER_CALLER} questions already wait for an answer.`);
    const question: Question = {
      id: randomUUID(),
      ...asked,
      server,
      session: context.session.id,
      name,
      askedAt: new Date().toISOString(),
    };
    const to = receiverOf(context);
    return new Promise((resolve, reject) => {
      const giveUp = (): void => {
        this.#close(question.id, null);
        reject(new ToolcribError("cancelled", "The question is no longer needed."));
      };
      if (signal.aborted) return giveUp();
      signal.addEventListener("abort", giveUp, { once: true });
      const settle = (answer: Answer): void => {
        signal.removeEventListener("abort", giveUp);
        resolve(answer);
      };
      this.#open.set(question.id, { question, identity, to, resolve: settle });
      this.#notify({ type: "question.asked", question }, to);
    });
  }

  #close(id: string, action: Answer["action"] | null): void {
    const open = this.#open.get(id);
    if (open === undefined) return;
    this.#open.delete(id);
    this.#notify({ type: "question.closed", id, action }, open.to);
  }
}

function elicitation({ mode, message, requestedSchema, url }: JsonObject): Asked {
  const text = typeof message === "string" ? message : "";
  if (mode !== "url")
    return { kind: "form", message: text, schema: isJsonObject(requestedSchema) ? requestedSchema : {} };
  // A page makes it a link, and `javascript:` would run there.
  const address = typeof url === "string" ? URL.parse(url) : null;
  if (address === null || !["http:", "https:"].includes(address.protocol))
    throw rpcRefusal(INVALID_PARAMS, "The url of an elicitation must be an http or https address.");
  return { kind: "url", message: text, url: address.href };
}

function toElicitResult({ action, content }: Answer): JsonObject {
  return action === "accept" && content !== undefined ? { action, content } : { action };
}

function toSample({ action, text = "", model = "human" }: Answer): JsonObject {
  if (action !== "accept") throw rpcRefusal(SAMPLING_REFUSED, "The user rejected the sampling request.");
  return { role: "assistant", model, content: { type: "text", text }, stopReason: "endTurn" };
}
