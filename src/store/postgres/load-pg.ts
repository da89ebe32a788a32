import type pg from "pg";
import { ToolcribError } from "../../model/errors.ts";

/** `pg` is installed only by those who use PostgreSQL. */
export async function loadPg(): Promise<typeof pg> {
  try {
    return (await import("pg")).default;
  } catch (error) {
    const missing = error instanceof Error && "code" in error && error.code === "ERR_MODULE_NOT_FOUND";
    if (!missing) throw error;
    throw new ToolcribError(
      "invalid_config",
      'The store is a PostgreSQL database, and the package "pg" is not installed.',
      {
        hint: "npm install pg",
        cause: error,
      },
    );
  }
}
