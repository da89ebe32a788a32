import type { Detector } from "./detector.ts";
import { hasPassages, suspicionsOf } from "./weigh.ts";

/** Keys, tokens, passwords, seed phrases, secret files or the system prompt are to be given away. */
export const credentialRequest: Detector = {
  name: "credential request",
  mayFind: hasPassages,
  find: (reading) => suspicionsOf(reading, "credential_request"),
};
