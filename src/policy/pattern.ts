/** One entry of a rule list: a glob on names, a class of tools, or a tag. */
import type { Capability } from "../model/capability.ts";
import type { ToolAnnotations } from "../model/protocol.ts";
import { compileGlob } from "./glob.ts";

/** What a pattern is matched against. */
export interface Matchable {
  /** A tool if absent. */
  readonly kind?: Capability["kind"] | undefined;
  readonly names: readonly string[];
  readonly annotations?: ToolAnnotations | undefined;
  readonly tags?: readonly string[] | undefined;
}

export type Pattern = (subject: Matchable) => boolean;

/**
 * Classes follow MCP's defaults for hints that are not given: a tool that does not say it is read-only counts as
 * destructive, and one that does not say otherwise as open to the world. Hints are a server's own word.
 */
const CLASSES: Readonly<Record<string, (annotations: ToolAnnotations | undefined) => boolean>> = {
  readOnly: (annotations) => annotations?.readOnlyHint === true,
  writes: (annotations) => annotations?.readOnlyHint !== true,
  destructive: (annotations) => annotations?.readOnlyHint !== true && annotations?.destructiveHint !== false,
  openWorld: (annotations) => annotations?.openWorldHint !== false,
};

export function compilePattern(text: string): Pattern {
  const byClass = Object.hasOwn(CLASSES, text) ? CLASSES[text] : undefined;
  // Resources and prompts have no such hints, and a rule about tools must not hide them all.
  if (byClass !== undefined) return ({ kind = "tool", annotations }) => kind === "tool" && byClass(annotations);
  if (text.startsWith("tag:")) {
    const tag = compileGlob(text.slice("tag:".length));
    return ({ tags }) => tags?.some(tag) === true;
  }
  const glob = compileGlob(text);
  return ({ names }) => names.some(glob);
}
