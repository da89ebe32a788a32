/** The same object for the same rules, because views and decisions are remembered by it and sessions then share them. */
import { RecentMap } from "../../model/recent-map.ts";
import type { SessionRules } from "../../model/tool-rules.ts";

const MOST = 256;
const known = new RecentMap<string, SessionRules>(MOST);

export function sharedRules(rules: SessionRules): SessionRules {
  const key = JSON.stringify(rules);
  let shared = known.get(key);
  if (shared === undefined) known.set(key, (shared = Object.freeze(rules)));
  return shared;
}
