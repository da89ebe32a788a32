/** The address of a PostgreSQL database as messages may show it. */
import { ToolcribError } from "../../model/errors.ts";

/** Without password and options, in which one may stand too. Rejects what is no PostgreSQL URL, without repeating it. */
export function shownAddress(url: string): string {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed === undefined || !["postgres:", "postgresql:"].includes(parsed.protocol)) {
    throw new ToolcribError("invalid_config", "The store's address is no PostgreSQL URL.", {
      hint: 'Write "store": "postgres://user@host:5432/database", the password through ${VAR} or secret://.',
    });
  }
  const user = parsed.username === "" ? "" : `${parsed.username}@`;
  const host = parsed.host || parsed.searchParams.get("host") || "localhost";
  return `postgres://${user}${host}${parsed.pathname}`;
}
