import { z } from "zod";

/** A glob on names, a class (`readOnly`, `destructive`, `openWorld`), or `tag:<name>`; `!` in front takes out again. */
const Patterns = z.array(z.string().min(1));

export const ToolRulesSchema = z.strictObject({
  allow: Patterns.optional().describe("Patterns of tools that may be used; all if absent."),
  deny: Patterns.optional().describe("Patterns of what may not be used; beats ask and allow."),
  ask: Patterns.optional().describe("Patterns of what needs a yes from a person first; beats allow."),
});

export type ToolRules = z.output<typeof ToolRulesSchema>;
