import type { Detector } from "./detector.ts";
import { hasPassages, suspicionsOf } from "./weigh.ts";

/** Text that speaks to the model behind the tool and wants something done, without any word about earlier orders. */
export const agentDirective: Detector = {
  name: "agent directive",
  mayFind: hasPassages,
  find: (reading) => suspicionsOf(reading, "agent_directive"),
};
