/** What policy says of one use of one capability, and which rule said so. */
export type Decision =
  | { readonly verdict: "allow"; readonly rule: Rule | null }
  | { readonly verdict: "deny"; readonly rule: Rule };

export interface Rule {
  readonly level: "hub" | "server" | "role" | "hook" | "tool";
  readonly list: "allow" | "deny" | "roles" | "ownerOnly";
  /** The glob that decided; for an `allow` list that nothing matched, the whole list. */
  readonly pattern: string;
  /** Where it is written, for a person. */
  readonly where: string;
}
