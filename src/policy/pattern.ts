/** One entry of a rule list: a glob on names, a class of tools, a tag, or exactly one name. */
import type { Capability } from "../model/capability.ts";
import type { ToolAnnotations } from "../model/protocol.ts";
import { compileGlob } from "./glob.ts";

/** What a pattern is matched against. */
export interface Matchable {
  /** A tool if absent. */
  readonly kind?: Capability["kind"] | undefined;
  readonly names: readonly string[];
  /** The names under which exactly this is meant and nothing else; `names` if absent. */
  readonly ownNames?: readonly string[] | undefined;
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

/**
 * `=tool:<name>`, `=resource:<uri>`, `=prompt:<name>`, or `=<name>` for any kind: the rest is a name as it stands, whatever
 * characters it has. A server chooses the names of what it offers, so one that a rule is made of must not act as a pattern.
 */
const EXACT = /^=(?:(tool|resource|prompt):)?(.*)$/s;

/** By what is done with it, the kind of thing that it is. */
const KINDS: Readonly<Record<string, string>> = {
  tool: "tool",
  prompt: "prompt",
  resource: "resource",
  subscribe: "resource",
  unsubscribe: "resource",
};

/** The entry that means this one thing; undefined where what is done says not what it is done with. */
export function exactPattern(use: string, name: string): string | undefined {
  const kind = Object.hasOwn(KINDS, use) ? KINDS[use] : undefined;
  return kind === undefined ? undefined : `=${kind}:${name}`;
}

/** An entry that takes something out again: one exact name lets nothing pass that merely has it as an alias. */
export function compileException(text: string): Pattern {
  const exact = EXACT.exec(text);
  if (exact === null) return compilePattern(text);
  return (subject) => isExactly(exact, subject, subject.ownNames ?? subject.names);
}

function isExactly([, kind, name = ""]: RegExpExecArray, subject: Matchable, names: readonly string[]): boolean {
  const { kind: given = "tool" } = subject;
  const isOfKind = kind === undefined || kind === (given === "template" ? "resource" : given);
  return isOfKind && names.includes(name);
}

export function compilePattern(text: string): Pattern {
  const exact = EXACT.exec(text);
  if (exact !== null) return (subject) => isExactly(exact, subject, subject.names);
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
