import type { CapabilityOrigin } from "./capability.ts";
import type { JsonObject } from "./json.ts";

/** What policy says of one use of one capability, and which rule said so. */
export type Decision =
  | { readonly verdict: "allow"; readonly rule: Rule | null }
  | { readonly verdict: "deny"; readonly rule: Rule }
  /** Somebody with the right to answer is asked first. */
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
    | "taint";
  /** The entry that decided; for an `allow` list that nothing matched, the whole list. */
  readonly pattern: string;
  /** Where it is written, for a person. */
  readonly where: string;
}

/** `session`: until the session ends. `always`: from now on, written down where the rule stands. */
export type AskAnswer = "once" | "session" | "always" | "no";

/** What became of a question. `withdrawn`: whoever asked gave up or went away first, so nobody decided. */
export type AskOutcome = AskAnswer | "timeout" | "withdrawn";

/** A call that waits for somebody's yes. */
export interface AskRequest {
  readonly id: string;
  /**
   * False: the call is under way and goes on with the answer. True: nobody could be asked, so the call was refused, and a
   * later yes lets the same call through when it is made again.
   */
  readonly held: boolean;
  readonly callId: string;
  readonly session: { readonly id: string; readonly door: string; readonly role?: string; readonly user?: string };
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
  /** ISO time after which the answer is no. */
  readonly expiresAt: string;
  /** In a cluster: the name of the other node at which it waits; absent for what waits here. */
  readonly node?: string;
}

/** What it throws counts as no. `signal` aborts when the question is moot. */
export type AskCallback = (request: AskRequest, signal: AbortSignal) => Promise<AskAnswer> | AskAnswer;
