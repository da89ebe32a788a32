/** Answers and askers in words. */
import type { Approval } from "../../../../src/contract/activity-schemas.ts";
import { doorWord } from "../sessions/session-words.ts";

export type AnswerWord = "once" | "session" | "always" | "no";

export const ANSWERED_WORDS: Readonly<Record<AnswerWord | "timeout" | "withdrawn", string>> = {
  once: "Allowed once",
  session: "Allowed for the session",
  always: "Always allowed",
  no: "Denied",
  timeout: "Not answered in time",
  withdrawn: "Withdrawn",
};

export function sessionText(session: Approval["session"]): string {
  const who = session.user ?? session.client?.name ?? session.role ?? "a client";
  return `${who} through ${doorWord(session.door)}`;
}
