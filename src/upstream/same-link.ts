import { canonicalJson } from "../model/canonical-json.ts";
import type { ServerSpec } from "../model/server-spec.ts";

/** What may change under an open link. A setting that nobody thought of counts as part of the link. */
const CHANGEABLE: ReadonlySet<string> = new Set<keyof ServerSpec>([
  "name",
  "tools",
  "roles",
  "tags",
  "trust",
  "pinResources",
  "toolPrefix",
  "autoConnect",
  "timeout",
  "toolTimeout",
  "restart",
  "origin",
  "replaces",
  "sandboxFrom",
  "replicas",
]);

/** Whether a link made for one of them serves the other as well. */
export function sameLink(one: ServerSpec, other: ServerSpec): boolean {
  return canonicalJson(linkPart(one)) === canonicalJson(linkPart(other));
}

/** What a link is made from. */
export function linkPart(spec: ServerSpec): Partial<ServerSpec> {
  return Object.fromEntries(Object.entries(spec).filter(([name]) => !CHANGEABLE.has(name)));
}
