import type { Detector } from "./detector.ts";
import { hasPassages, suspicionsOf } from "./weigh.ts";

/** "Do not tell the user." Honest content has little reason to ask for it. */
export const concealment: Detector = {
  name: "concealment",
  mayFind: hasPassages,
  find: (reading) => suspicionsOf(reading, "concealment"),
};
