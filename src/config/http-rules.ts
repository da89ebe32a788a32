import type { HttpConfig } from "../model/http-config.ts";
import { isPlainText } from "../secrets/looks-like-secret.ts";
import type { Diagnostic } from "./diagnostics.ts";
import type { Document } from "./document.ts";

/** What works under `http` and should be changed all the same. No message holds a value. */
export function httpWarnings(document: Document, http: HttpConfig): Diagnostic[] {
  const tokens = http.auth?.tokens ?? [];
  return tokens.flatMap(({ token }, index) =>
    isPlainText(token)
      ? [
          document.report(["http", "auth", "tokens", index, "token"], {
            severity: "warning",
            code: "plain_credential",
            message: "a credential is written as plain text",
            hint: "use a reference such as ${NAME} or secret://env/NAME",
          }),
        ]
      : [],
  );
}
