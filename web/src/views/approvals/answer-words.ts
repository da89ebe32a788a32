/** Answers and askers in words. */
import type { Approval } from "../../../../src/contract/activity-schemas.ts";
import { doorWord } from "../sessions/session-words.ts";

export type LastingWord = "always" | "always-values" | "always-call";
export type AnswerWord = "once" | "session" | LastingWord | "no";

export const ANSWERED_WORDS: Readonly<Record<AnswerWord | "timeout" | "withdrawn", string>> = {
  once: "Allowed once",
  session: "Allowed for the session",
  always: "Always allowed",
  "always-values": "Always allowed with these values",
  "always-call": "Always allowed as exactly this call",
  no: "Denied",
  timeout: "Not answered in time",
  withdrawn: "Withdrawn",
};

export function sessionText(session: Approval["session"]): string {
  const who = session.user ?? session.client?.name ?? session.role ?? "a client";
  return `${who} through ${doorWord(session.door)}`;
}
