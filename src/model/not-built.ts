import type { z } from "zod";

/**
 * Marks a key or value that the config contract names and this version does not act on.
 * The loader refuses it with the given text: ignoring a guard or a limit in silence would be worse.
 */
export function notBuilt<T extends z.ZodType>(schema: T, what: string): T {
  return schema.meta({ ...schema.meta(), notBuilt: what });
}
