import { createHash } from "node:crypto";
import { canonicalJson } from "../../model/canonical-json.ts";
import type { ServerSpec } from "../../model/server-spec.ts";
import { linkPart } from "../same-link.ts";

/** A spec is immutable, and asked for with every call. */
const known = new WeakMap<ServerSpec, string>();

/** The same for specs that one program can serve, on whichever node they are; references are hashed as they are written. */
export function specDigest(spec: ServerSpec): string {
  const before = known.get(spec);
  if (before !== undefined) return before;
  const { baseDir: _ofThisNode, ownFolder: _too, ...shared } = linkPart(spec);
  const digest = createHash("sha256").update(canonicalJson(shared)).digest("hex").slice(0, 32);
  known.set(spec, digest);
  return digest;
}
