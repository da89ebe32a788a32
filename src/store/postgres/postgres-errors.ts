/** Failures of PostgreSQL, and of reaching it, as errors that say what to do. */
import { ToolcribError } from "../../model/errors.ts";

/** What the operator has to change; the codes are those of PostgreSQL's own table. */
const WRONG_CONFIG: Readonly<Record<string, string>> = {
  "28P01": "Check the user and the password that the store's address has.",
  "28000": "Check the user of the store's address, and pg_hba.conf of the server.",
  "3D000": "Create the database first: createdb <name>.",
  "3F000": "Create the schema first, or leave search_path out of the address.",
  "42501": "Give the user of the store's address the right to create and use tables in its schema.",
  "42P07":
    "Give Toolcrib a database of its own, or a schema of its own: add ?options=-csearch_path%3Dtoolcrib to the address.",
};

/** Sockets, and the classes of codes for: connection, resources, operator. */
const UNREACHABLE = /^(E[A-Z_]+|08...|53...|57P..)$/;

export function postgresFailure(place: string, error: unknown): Error {
  if (error instanceof ToolcribError) return error;
  const code = error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "";
  const text = textOf(error);
  const hint = WRONG_CONFIG[code];
  if (hint !== undefined) {
    return new ToolcribError("invalid_config", `The database ${place} refuses: ${text}.`, { hint, details: { place } });
  }
  if (UNREACHABLE.test(code) || /terminated|timeout|not queryable|ssl/i.test(text)) {
    return new ToolcribError("server_unavailable", `The database ${place} cannot be reached: ${text}.`, {
      hint: "Check that PostgreSQL runs there and that its address is right.",
      details: { place },
      cause: error,
    });
  }
  return error instanceof Error ? error : new Error(text);
}

/** Where several addresses were tried, the error itself says nothing. */
function textOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(textOf).join(", ");
  return error instanceof Error ? error.message : String(error);
}
