import type { Detector } from "./detector.ts";
import { suspicionsOf } from "./weigh.ts";

/** Keys, tokens, passwords, seed phrases, secret files or the system prompt are to be given away. */
export const credentialRequest: Detector = {
  name: "credential request",
  find: (reading) => suspicionsOf(reading, "credential_request"),
};
