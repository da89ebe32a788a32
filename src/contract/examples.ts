import { ACTIVITY_EXAMPLES } from "./examples/activity.ts";
import { CATALOG_EXAMPLES } from "./examples/catalog.ts";
import type { Examples } from "./examples/example.ts";
import { SERVER_EXAMPLES } from "./examples/servers.ts";
import { SETTINGS_EXAMPLES } from "./examples/settings.ts";
import { SKILL_EXAMPLES } from "./examples/skills.ts";

export const EXAMPLES: Examples = {
  ...SETTINGS_EXAMPLES,
  ...SERVER_EXAMPLES,
  ...CATALOG_EXAMPLES,
  ...SKILL_EXAMPLES,
  ...ACTIVITY_EXAMPLES,
};
