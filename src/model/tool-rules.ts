import { z } from "zod";

/**
 * A glob on names, a class (`readOnly`, `writes`, `destructive`, `openWorld`), `tag:<name>`, or exactly one name after `=`
 * (`=tool:<name>`, `=resource:<uri>`, `=prompt:<name>`); `!` in front takes out again.
 */
const Patterns = z.array(z.string().min(1));

export const ToolRulesSchema = z.strictObject({
  allow: Patterns.optional().describe("Patterns of tools that may be used; all if absent."),
  deny: Patterns.optional().describe("Patterns of what may not be used; beats ask and allow."),
  ask: Patterns.optional().describe("Patterns of what needs approval by a person; beats allow."),
});

export type ToolRules = z.output<typeof ToolRulesSchema>;

/** Rules that a session brings along. Not part of the config. */
export interface SessionRules extends ToolRules {
  /**
   * Only what these sources offer, whatever its kind; `local` is the in-process tools. An id also stands for the server that
   * a role has in its place.
   */
  readonly servers?: readonly string[] | undefined;
  /** Only what servers with at least one of these tags offer. In-process tools have no tags. */
  readonly tags?: readonly string[] | undefined;
  /** Whether patterns of this set also match what servers themselves call their tools. */
  readonly ownNames?: boolean | undefined;
  /** Patterns of what `allow` says nothing about. They match public names only, so no server can give itself one of them. */
  readonly exempt?: readonly string[] | undefined;
  /** Further sets of rules, each of which has to let something through as well. */
  readonly also?: readonly SessionRules[] | undefined;
}
