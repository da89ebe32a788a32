/** One entry of a rule list: a glob on names, a class of tools, or a tag. */
import type { Capability } from "../model/capability.ts";
import type { ToolAnnotations } from "../model/protocol.ts";
import { canonicalPatterns, couldNameUri, spellingsOf } from "./canonical-uri.ts";
import { compileGlob } from "./glob.ts";

/** What a pattern is matched against. */
export interface Matchable {
  /** A tool if absent. */
  readonly kind?: Capability["kind"] | undefined;
  readonly names: readonly string[];
  /** Those of `names` that are the URI read through a template. An exception has to name it, or the template exactly. */
  readonly read?: readonly string[] | undefined;
  readonly annotations?: ToolAnnotations | undefined;
  readonly tags?: readonly string[] | undefined;
  /** Works out the spellings of a URI, where several rules are matched against the same names; done for each if absent. */
  readonly spellings?: typeof spellingsOf | undefined;
}

export interface Pattern {
  /** Whether it names the subject. Of a resource any spelling of its URI will do, and one that cannot be told counts. */
  names(subject: Matchable): boolean;
  /** Whether it names the subject beyond doubt: of a resource the URI as written and every spelling of it. */
  namesSurely(subject: Matchable): boolean;
}

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
  if (byClass !== undefined) return plain(({ kind = "tool", annotations }) => kind === "tool" && byClass(annotations));
  if (text.startsWith("tag:")) {
    const tag = compileGlob(text.slice("tag:".length));
    return plain(({ tags }) => tags?.some(tag) === true);
  }
  const asWritten = compileGlob(text);
  const byName = ({ names }: Matchable): boolean => names.some(asWritten);
  if (!couldNameUri(text)) return plain(byName);
  const globs = [asWritten, ...canonicalPatterns(text).map(compileGlob)];
  const matches = (spelling: string): boolean => globs.some((glob) => glob(spelling));
  return {
    names: (subject) => {
      if (byName(subject)) return true;
      const { spellings = spellingsOf } = subject;
      return hasUris(subject) && subject.names.some((name) => spellings(name)?.some(matches) ?? true);
    },
    namesSurely: (subject) => {
      if (!hasUris(subject)) return byName(subject);
      const { names, read = names, spellings = spellingsOf } = subject;
      if (names.includes(text)) return true;
      return read.some((name) => asWritten(name) && spellings(name)?.every(matches) === true);
    },
  };
}

function plain(matches: (subject: Matchable) => boolean): Pattern {
  return { names: matches, namesSurely: matches };
}

function hasUris({ kind }: Matchable): boolean {
  return kind === "resource" || kind === "template";
}
