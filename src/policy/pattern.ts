/** One entry of a rule list: a glob on names, a class of tools, a tag, or exactly one name. */
import type { Capability } from "../model/capability.ts";
import type { ToolAnnotations } from "../model/protocol.ts";
import { parseEntry, type When } from "../model/tool-rules.ts";
import { canonicalPatterns, couldNameUri, spellingsOf } from "./canonical-uri.ts";
import { compileGlob } from "./glob.ts";
import { compileConditions, type Conditions, type CountedCalls } from "./rule-conditions.ts";
import { PatternIndex } from "./pattern-index.ts";
import type { Effect, KnownTool } from "./well-known-servers.ts";

export interface Matchable {
  /** A tool if absent. */
  readonly kind?: Capability["kind"] | undefined;
  readonly names: readonly string[];
  /** Those of `names` that are the URI read through a template. An exception has to name it, or the template exactly. */
  readonly read?: readonly string[] | undefined;
  /** The names under which exactly this is meant and nothing else; `names` if absent. */
  readonly ownNames?: readonly string[] | undefined;
  readonly annotations?: ToolAnnotations | undefined;
  readonly tags?: readonly string[] | undefined;
  /** The entry of a tool in the table of well-known servers. */
  readonly known?: KnownTool | undefined;
  /** Effects that the name of a tool gives away, where its server's hints are not believed. */
  readonly byName?: ReadonlySet<Effect> | undefined;
  /** Works out the spellings of a URI, where several rules are matched against the same names; done for each if absent. */
  readonly spellings?: typeof spellingsOf | undefined;
}

interface Pattern {
  /** Whether it names the subject. For a resource any spelling of its URI matches, and so does a URI with too many spellings. */
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

/**
 * `=tool:<name>`, `=resource:<uri>`, `=prompt:<name>`, or `=<name>` for any kind: the rest is a literal name, whatever
 * characters it has. A server chooses the names of what it offers, so one that a rule is made of must not act as a pattern.
 */
const EXACT = /^=(?:(tool|resource|prompt):)?(.*)$/s;

/** By what is done with it, the kind of thing that it is. */
const KIND_OF_USE: Readonly<Record<string, string>> = {
  tool: "tool",
  prompt: "prompt",
  resource: "resource",
  subscribe: "resource",
  unsubscribe: "resource",
};

/** The entry that means this one thing; undefined where what is done says not what it is done with. */
export function exactPattern(use: string, name: string): string | undefined {
  const kind = Object.hasOwn(KIND_OF_USE, use) ? KIND_OF_USE[use] : undefined;
  return kind === undefined ? undefined : `=${kind}:${name}`;
}

/** One exact name. As an exception it lets nothing pass that merely has it as an alias, or in another spelling. */
function exactNamePattern([, kind, name = ""]: RegExpExecArray): Pattern {
  const isOfKind = ({ kind: given = "tool" }: Matchable): boolean =>
    kind === undefined || kind === (given === "template" ? "resource" : given);
  const meant = couldNameUri(name) ? new Set(spellingsOf(name) ?? [name]) : undefined;
  return {
    names: (subject) => {
      if (!isOfKind(subject)) return false;
      const { names, spellings = spellingsOf } = subject;
      if (names.includes(name)) return true;
      if (meant === undefined || !hasUris(subject)) return false;
      return names.some((given) => spellings(given)?.some((spelling) => meant.has(spelling)) ?? true);
    },
    namesSurely: (subject) => isOfKind(subject) && (subject.ownNames ?? subject.names).includes(name),
  };
}

export function compilePattern(text: string): Pattern {
  const exact = EXACT.exec(text);
  if (exact !== null) return exactNamePattern(exact);
  const byClass = Object.hasOwn(CLASSES, text) ? CLASSES[text] : undefined;
  // Resources and prompts have no such hints, and a rule about tools must not hide them all.
  if (byClass !== undefined)
    return simplePattern(({ kind = "tool", annotations }) => kind === "tool" && byClass(annotations));
  if (text.startsWith("tag:")) {
    const tag = compileGlob(text.slice("tag:".length));
    return simplePattern(({ tags }) => tags?.some(tag) === true);
  }
  const asWritten = compileGlob(text);
  const byName = ({ names }: Matchable): boolean => names.some(asWritten);
  if (!couldNameUri(text)) return simplePattern(byName);
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

function simplePattern(matches: (subject: Matchable) => boolean): Pattern {
  return { names: matches, namesSurely: matches };
}

function hasUris({ kind }: Matchable): boolean {
  return kind === "resource" || kind === "template";
}

interface Entry {
  readonly text: string;
  readonly pattern: Pattern;
  readonly conditions: Conditions | undefined;
}

/** An entry that names the subject: it counts if its conditions hold. */
export interface ConcernedEntry {
  /** As written, without the `!` of an exception. */
  readonly text: string;
  readonly conditions: Conditions | undefined;
}

/** The part of a list that is about one subject. */
export interface ConcernedList {
  readonly entries: readonly ConcernedEntry[];
  readonly exceptions: readonly ConcernedEntry[];
  /** Where there are many. */
  readonly entryIndex: PatternIndex<ConcernedEntry> | undefined;
  readonly exceptionIndex: PatternIndex<ConcernedEntry> | undefined;
}

/** An entry with conditions on the circumstances of a call. */
export interface ConditionalEntry {
  readonly pattern: string;
  readonly when: When;
}

/**
 * A list of patterns, compiled once. An entry that begins with `!` is an exception to the others. In doubt about what a
 * URI means an entry applies and an exception does not.
 */
export class PatternList {
  readonly #entries: readonly Entry[];
  readonly #exceptions: readonly Entry[];

  constructor(patterns: readonly string[], conditional: readonly ConditionalEntry[] = []) {
    const all = [
      ...patterns.map((pattern) => ({ pattern, when: undefined })),
      ...conditional.map(({ pattern, when }) => ({ pattern, when })),
    ];
    const isException = ({ pattern }: { pattern: string }): boolean => pattern.startsWith("!");
    this.#entries = all
      .filter((each) => !isException(each))
      .map(({ pattern, when }) => compileEntry(pattern, pattern, when));
    this.#exceptions = all
      .filter(isException)
      .map(({ pattern, when }) => compileEntry(pattern, pattern.slice(1), when));
  }

  /** The calls that rules of the list count. */
  get counted(): CountedCalls[] {
    return [...this.#entries, ...this.#exceptions].flatMap(({ conditions }) => conditions?.counted ?? []);
  }

  /**
   * The first entry that matches, unless an exception does too. Entries with conditions are not looked at.
   */
  match(subject: Matchable): string | undefined {
    const found = this.#entries.find((entry) => entry.conditions === undefined && entry.pattern.names(subject))?.text;
    return found === undefined || this.excepts(subject) ? undefined : found;
  }

  excepts(subject: Matchable): boolean {
    return this.#exceptions.some(({ pattern, conditions }) => conditions === undefined && pattern.namesSurely(subject));
  }

  /** @param grants Whether the list lets through: then an exception with conditions counts in doubt. */
  concerning(subject: Matchable, grants: boolean): ConcernedList {
    const isExcepted = ({ pattern, conditions }: Entry): boolean =>
      grants && conditions !== undefined ? pattern.names(subject) : pattern.namesSurely(subject);
    const entries = this.#entries.filter(({ pattern }) => pattern.names(subject));
    const exceptions = this.#exceptions.filter(isExcepted);
    return { entries, exceptions, entryIndex: PatternIndex.of(entries), exceptionIndex: PatternIndex.of(exceptions) };
  }
}

function compileEntry(text: string, pattern: string, when: When | undefined): Entry {
  const { base, conditions } = parseEntry(pattern);
  const compiled = compilePattern(base);
  return { text, pattern: compiled, conditions: compileConditions(conditions, when) };
}

interface ClassRules {
  readonly openWorld?: readonly string[] | undefined;
  readonly destructive?: readonly string[] | undefined;
  readonly sendsOut?: readonly string[] | undefined;
  readonly memory?: readonly string[] | undefined;
}

type ToolClass = keyof ClassRules;

interface ClassSource {
  /** Whether a tool is taken for one by its hints, and by MCP's defaults for those it does not give. */
  readonly byHints: (annotations: ToolAnnotations | undefined) => boolean;
  /** Of a well-known tool: whether its hints say so outright. */
  readonly adds: (annotations: ToolAnnotations | undefined) => boolean;
  readonly effects: readonly Effect[];
}

const CLASS_SOURCES: Readonly<Record<ToolClass, ClassSource>> = {
  openWorld: {
    byHints: (annotations) => annotations?.openWorldHint !== false,
    adds: (annotations) => annotations?.openWorldHint === true,
    effects: ["brings", "fetches"],
  },
  destructive: {
    byHints: (annotations) => annotations?.readOnlyHint !== true && annotations?.destructiveHint !== false,
    adds: (annotations) => annotations?.readOnlyHint !== true && annotations?.destructiveHint === true,
    effects: ["destroys"],
  },
  sendsOut: {
    // A tool of the open world can carry data out in what it asks for, even when it only reads.
    byHints: (annotations) => annotations?.openWorldHint !== false,
    adds: () => false,
    effects: ["sends"],
  },
  memory: { byHints: () => false, adds: () => false, effects: ["remembers", "recalls"] },
};

/** A tool as the flow guard sees it. */
export interface ToolFlow {
  /** It returns what anyone may have written. */
  readonly openWorld: boolean;
  /** Why it is held back in a tainted session. */
  readonly risk: "destructive" | "sendsOut" | undefined;
  /** It sends data out if its arguments have an address that carries some. */
  readonly fetches: boolean;
  /** Whether it writes notes for later, or only reads them. */
  readonly memory: "writes" | "reads" | undefined;
}

/**
 * The classes of tools: by the table of well-known servers, else by their hints, and of servers that are not trusted by their
 * names as well; corrected by the config, whose patterns add and whose exceptions remove.
 */
export class ToolClasses {
  readonly #lists: Readonly<Record<ToolClass, PatternList>>;

  constructor({ openWorld = [], destructive = [], sendsOut = [], memory = [] }: ClassRules) {
    this.#lists = {
      openWorld: new PatternList(openWorld),
      destructive: new PatternList(destructive),
      sendsOut: new PatternList(sendsOut),
      memory: new PatternList(memory),
    };
  }

  has(subject: Matchable, name: ToolClass): boolean {
    const list = this.#lists[name];
    if (list.match(subject) !== undefined) return true;
    // The content of a resource or a prompt may come from anyone, too.
    const isTool = subject.kind === undefined || subject.kind === "tool";
    const isTaken = isTool ? isTakenFor(subject, CLASS_SOURCES[name]) : name === "openWorld";
    return isTaken && !list.excepts(subject);
  }

  flowOf(subject: Matchable): ToolFlow {
    const isMemory = this.has(subject, "memory");
    const { known, annotations } = subject;
    const writes = known?.isSure === true ? known.effects.has("remembers") : annotations?.readOnlyHint !== true;
    return {
      openWorld: this.has(subject, "openWorld"),
      risk: (["destructive", "sendsOut"] as const).find((name) => this.has(subject, name)),
      fetches: known?.effects.has("fetches") === true && !this.#lists.sendsOut.excepts(subject),
      memory: isMemory ? (writes ? "writes" : "reads") : undefined,
    };
  }
}

function isTakenFor({ known, byName, annotations }: Matchable, { byHints, adds, effects }: ClassSource): boolean {
  const isListed = effects.some((effect) => known?.effects.has(effect));
  if (known?.isSure === true) return isListed || adds(annotations);
  return isListed || byHints(annotations) || effects.some((effect) => byName?.has(effect));
}
