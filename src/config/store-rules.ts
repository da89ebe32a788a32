import type { Config } from "../model/config.ts";
import { isPlainText } from "../secrets/looks-like-secret.ts";
import type { Diagnostic } from "./diagnostics.ts";
import type { Document } from "./document.ts";

const USE_A_REFERENCE = "use a reference such as ${NAME} or secret://env/NAME";

/** Keys and passwords of the store that are written out. No message holds a value. */
export function storeWarnings(document: Document, { store, secrets }: Pick<Config, "store" | "secrets">): Diagnostic[] {
  const warnings: Diagnostic[] = [];
  const warn = (path: string[], message: string): void => {
    const report = { severity: "warning", code: "plain_credential", message, hint: USE_A_REFERENCE } as const;
    warnings.push(document.report(path, report));
  };
  const [, password] = /^[a-z]+:\/\/[^:/?#]*:([^/?#]*)@/i.exec(store ?? "") ?? [];
  if (password !== undefined && isPlainText(password)) warn(["store"], "a password is written as plain text");
  if (secrets.key !== undefined && isPlainText(secrets.key)) {
    warn(["secrets", "key"], "the key of the encrypted secrets is written as plain text");
  }
  return warnings;
}
