import type { Detector } from "./detector.ts";
import { suspicionsOf } from "./weigh.ts";

/** "Do not tell the user." Honest content has little reason to ask for it. */
export const concealment: Detector = {
  name: "concealment",
  find: (reading) => suspicionsOf(reading, "concealment"),
};
