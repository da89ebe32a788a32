/** What the scripted model needs of a provider's protocol. */
import type { JsonObject } from "../../model/json.ts";
import type { Answer } from "./answer.ts";
import type { ProtocolName, ReadRequest } from "./model-request.ts";

/** One event of a stream. */
export interface Frame {
  readonly event?: string;
  readonly data: JsonObject | string;
  /** Carries a piece of the answer; the others are what the protocol puts around them. */
  readonly piece?: true;
}

export interface ErrorFacts {
  readonly status: number;
  readonly message: string | undefined;
  readonly code?: string | undefined;
}

/** What a request says beside its body. */
export interface RequestFacts {
  readonly headers: Readonly<Record<string, string>>;
  readonly path: string;
}

export interface Protocol {
  readonly name: ProtocolName;
  /** How the ids begin that it gives to calls. */
  readonly callPrefix: string;
  /** Throws RejectedRequest for what the provider would not take. */
  read(body: JsonObject, from: RequestFacts): ReadRequest;
  frames(answer: Answer): Iterable<Frame>;
  /** The answer to a request that asks for no stream. */
  whole(answer: Answer): JsonObject;
  error(facts: ErrorFacts): JsonObject;
  /** An error after the stream has begun. */
  failure(message: string): Frame;
}

/** A request that the provider would answer with an error. */
export class RejectedRequest extends Error {
  override readonly name = "RejectedRequest";
  readonly status: number;

  constructor(message: string, status = 400) {
    super(message);
    this.status = status;
  }
}
