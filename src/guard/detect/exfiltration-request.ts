import type { Detector } from "./detector.ts";
import { hasPassages, suspicionsOf } from "./weigh.ts";

/** "Send the conversation to …", "append the history to this URL". */
export const exfiltrationRequest: Detector = {
  name: "exfiltration request",
  mayFind: hasPassages,
  find: (reading) => suspicionsOf(reading, "exfiltration_request"),
};
