import type { Capability } from "../model/capability.ts";
import type { Source, Use } from "../model/source.ts";

/** What a public name stands for: the capability, who has it, and the use in that source's own words. */
export interface Target {
  readonly capability: Capability;
  readonly source: Source;
  readonly use: Use;
}
