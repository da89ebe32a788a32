import { z } from "zod";
import { notBuilt } from "./not-built.ts";

const Globs = z.array(z.string().min(1));

export const ToolRulesSchema = z.strictObject({
  allow: Globs.optional().describe("Globs of names that may be used; all if absent."),
  deny: Globs.optional().describe("Globs of names that may not be used; beats allow."),
  ask: notBuilt(Globs, "Asking before a call").optional()
    .describe("Globs of names that need an answer from a person first."),
});

export type ToolRules = z.output<typeof ToolRulesSchema>;
