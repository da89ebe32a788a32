/** Any thrown value as what the page shows of an error. */
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
  // What fetch throws when nobody answers.
  if (thrown instanceof TypeError && code === undefined)
    return {
      code: "server_unavailable",
      message: "The hub is not responding.",
      hint: "Check that `toolcrib serve` is still running on its machine.",
      details: undefined,
    };
  return {
    code: typeof code === "string" ? code : "internal",
    message: typeof message === "string" ? message : "Something went wrong.",
    hint: typeof hint === "string" ? hint : undefined,
    details: typeof details === "object" && details !== null ? { ...details } : undefined,
  };
}
