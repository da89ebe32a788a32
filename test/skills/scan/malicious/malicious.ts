/** Malicious skills of every kind, written for these tests. */
import type { Sample } from "../build-skill.ts";
import { AGENTS } from "./agents.ts";
import { DOWNLOADS } from "./downloads.ts";
import { ENCODED } from "./encoded.ts";
import { EVASIONS } from "./evasions.ts";
import { LEARNED_1 } from "./learned-1.ts";
import { LEARNED_2 } from "./learned-2.ts";
import { MACHINES } from "./machines.ts";
import { PREREQUISITES } from "./prerequisites.ts";
import { SECRETS } from "./secrets.ts";
import { VARIANTS } from "./variants.ts";

export const MALICIOUS: readonly Sample[] = [
  ...DOWNLOADS,
  ...ENCODED,
  ...PREREQUISITES,
  ...SECRETS,
  ...MACHINES,
  ...AGENTS,
  ...VARIANTS,
  ...LEARNED_1,
  ...LEARNED_2,
  ...EVASIONS,
];
