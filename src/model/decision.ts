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
