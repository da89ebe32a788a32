import type { ClientInfo } from "./client-info.ts";
import type { CapabilityOrigin } from "./capability.ts";
import type { JsonObject } from "./json.ts";

/** The decision of policy on one use of a capability, and the rule behind it. */
export type Decision =
  | { readonly verdict: "allow"; readonly rule: Rule | null }
  | { readonly verdict: "deny"; readonly rule: Rule }
  /** It needs approval first. */
  | { readonly verdict: "ask"; readonly rule: Rule };

export interface Rule {
  readonly level: "hub" | "project" | "server" | "role" | "session" | "hook" | "tool" | "pin" | "taint";
  readonly list:
    | "allow"
    | "deny"
    | "ask"
    | "roles"
    | "servers"
    | "skills"
    | "tags"
    | "ownerOnly"
    | "pins"
    | "definitions"
    | "overrides"
    | "taint";
  /** The entry that decided; for an `allow` list that nothing matched, the whole list. */
  readonly pattern: string;
  /** Where it is written, for a person. */
  readonly where: string;
  /** The arguments that it looks at, as it writes them; absent if none. Never their values. */
  readonly arguments?: readonly string[];
}

/**
 * `session`: until the session ends. From now on, saved where the rule is defined: `always` this tool, `always-values` this tool with
 * these values of the arguments that rules look at, `always-call` exactly this call.
 */
export type AskAnswer = (typeof ASK_ANSWERS)[number];
export const ASK_ANSWERS = ["once", "session", "always", "always-values", "always-call", "no"] as const;
export type LastingAnswer = "always" | "always-values" | "always-call";

/** The outcome of an approval request. `withdrawn`: the caller gave up or disconnected first. */
export type AskOutcome = AskAnswer | "timeout" | "withdrawn";

/** A call that waits for approval. */
export interface AskRequest {
  readonly id: string;
  /**
   * False: the call is in progress and continues with the answer. True: no one could be asked, so the call was refused, and a
   * later yes lets the same call through when it is made again.
   */
  readonly held: boolean;
  readonly callId: string;
  readonly session: {
    readonly id: string;
    readonly door: string;
    readonly role?: string;
    readonly user?: string;
    readonly client?: ClientInfo;
    readonly conversation?: string;
    /** The folders that it works in. */
    readonly roots?: readonly string[];
  };
  /** `tool`, `resource`, `prompt` … */
  readonly kind: string;
  /** Public name or URI. */
  readonly name: string;
  readonly origin: CapabilityOrigin;
  readonly arguments: Readonly<JsonObject>;
  readonly rule: Rule;
  /** Every rule that asks for the same reason; "always" is written to each. */
  readonly rules: readonly Rule[];
  /** Why it is asked, in a sentence for a person. */
  readonly reason: string;
  /** The answers that last, each with the entry that it adds to the list that asks as an exception. */
  readonly lasting?: Readonly<Partial<Record<LastingAnswer, string>>>;
  /** ISO time after which it counts as refused. */
  readonly expiresAt: string;
  /** In a cluster: the name of the other node at which it waits; absent for what waits here. */
  readonly node?: string;
}

/** An error counts as a refusal. `signal` aborts when the request is no longer needed. */
export type AskCallback = (request: AskRequest, signal: AbortSignal) => Promise<AskAnswer> | AskAnswer;
