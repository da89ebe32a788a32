/** Any thrown value as what the page shows of an error. */
import { components } from "./messages/components.ts";
import { t } from "./messages/messages.ts";

export interface Failure {
  readonly code: string;
  readonly message: string;
  readonly hint: string | undefined;
  readonly details: Readonly<Record<string, unknown>> | undefined;
}

export function failureOf(thrown: unknown): Failure {
  if (typeof thrown !== "object" || thrown === null)
    return { code: "internal", message: String(thrown), hint: undefined, details: undefined };
  const { code, message, hint, details } = thrown as Readonly<Record<string, unknown>>;
  // Thrown by fetch when there is no response.
  if (thrown instanceof TypeError && code === undefined)
    return {
      code: "server_unavailable",
      message: t(components.noAnswer),
      hint: t(components.noAnswerHow),
      details: undefined,
    };
  return {
    code: typeof code === "string" ? code : "internal",
    message: typeof message === "string" ? message : t(components.wentWrong),
    hint: typeof hint === "string" ? hint : undefined,
    details: typeof details === "object" && details !== null ? { ...details } : undefined,
  };
}
