/** Tools of one server that reach for those of another: by speaking of them, or by looking like them. */
import { isOneEditAway } from "../../base/near-matches.ts";
import type { ToolCapability } from "../../model/capability.ts";
import type { Severity } from "../../model/finding.ts";
import { normalise } from "../../base/normalise.ts";

/** A tool as the search for shadowing sees it: its names, and everything in its definition that a model reads. */
export interface ListedTool {
  readonly server: string;
  /** The server's own name for it. */
  readonly name: string;
  /** The name that models know it by. */
  readonly publicName?: string;
  readonly description?: string;
  /** Other texts: titles, and the texts of its schemas. */
  readonly texts?: readonly string[];
  /** The definition that all of these texts are from, whose words are remembered. */
  readonly definition?: object;
}

interface Mention {
  readonly kind: "mention";
  readonly severity: Severity;
  /** The tool whose definition speaks. */
  readonly tool: { readonly server: string; readonly name: string };
  /** The tool of another server that it names. */
  readonly target: { readonly server: string; readonly name: string };
  readonly excerpt: string;
}

/** A name that a model, or a person, may take for the name of another server's tool. */
interface SimilarName {
  readonly kind: "similar_name";
  readonly severity: Severity;
  readonly tool: { readonly server: string; readonly name: string };
  /** The one that was listed first. */
  readonly target: { readonly server: string; readonly name: string };
}

export type Shadowing = Mention | SimilarName;

/** Larger than any real definition; the scan of definitions reports a larger one. */
const MAX_TEXTS = 20_000;

/** Shorter or plainer names are words of the language: "search" in a description names nothing. */
const MIN_PLAIN_LENGTH = 8;
const ORDERING =
  /\b(?:must|always|never|instead|before|first|do not|don't|not use|rather than|prefer|only use|override|replace[sd]?|deprecated|ignore|whenever|when using|any time|required|important|also call|after)\b/;
const ORDERING_NEAR = 120;
const MAX_MENTIONS_PER_TOOL = 50;

/**
 * Linear in the total text: names are looked up in an index, never compared pair by pair.
 * Names of the same server never shadow each other.
 */
export function findShadowing(tools: readonly ListedTool[]): Shadowing[] {
  const index = new NameIndex(tools);
  return [...tools.flatMap((tool) => mentionsIn(tool, index)), ...similarNames(tools)];
}

/** As `findShadowing`, of capabilities. Tools of one server alone are not read. */
export function findShadowingAmong(tools: readonly ToolCapability[]): Shadowing[] {
  const isOneServer = tools.every(({ origin }) => origin.source === tools[0]?.origin.source);
  return isOneServer ? [] : findShadowing(tools.map(listedTool));
}

/** A sentence that the servers' owner may act on. */
export function describeShadowing({ kind, tool, target }: Shadowing): string {
  const other = `${target.name} of the server ${target.server}`;
  if (kind === "mention") return `The definition of ${tool.name} mentions ${other}.`;
  return `The tool ${tool.name} has ${tool.name === target.name ? "the same name as" : "almost the same name as"} ${other}.`;
}

/** The names of tools: those of their servers and the public ones. */
class NameIndex {
  readonly #byName = new Map<string, { readonly first: ListedTool; readonly servers: Set<string> }>();

  constructor(tools: readonly ListedTool[]) {
    for (const tool of tools) {
      const names = [tool.name, ...(tool.publicName === undefined ? [] : [tool.publicName])];
      for (const name of new Set(names.filter(isDistinctive).map((each) => normalise(each).text))) {
        const known = this.#byName.get(name);
        if (known === undefined) this.#byName.set(name, { first: tool, servers: new Set([tool.server]) });
        else known.servers.add(tool.server);
      }
    }
  }

  /** The tool of another server that a word names; undefined if the speaker's own server has one of that name too. */
  find(word: string, speaker: string): ListedTool | undefined {
    const named = this.#byName.get(word);
    return named?.servers.has(speaker) === true ? undefined : named?.first;
  }
}

const WORD = /[\p{L}\p{N}_][\p{L}\p{N}_./:-]{0,127}/gu;
const MIN_NAME_LENGTH = 5;

/**
 * Reading costs more than looking up, most tools name no other, and the catalog changes more often than definitions do. As one text:
 * a list of texts takes four times as much.
 */
const wordsByDefinition = new WeakMap<object, string>();

function wordsOf(tool: ListedTool): readonly string[] {
  const known = tool.definition && wordsByDefinition.get(tool.definition);
  if (known !== undefined) return known.split(" ");
  const all = toolTexts(tool).flatMap((text) => normalise(text).text.match(WORD) ?? []);
  const words = [...new Set(all.filter((word) => word.length >= MIN_NAME_LENGTH))];
  if (tool.definition !== undefined) wordsByDefinition.set(tool.definition, words.join(" "));
  return words;
}

function toolTexts({ description = "", texts = [] }: ListedTool): readonly string[] {
  return [description, ...texts];
}

/** One for each tool that is named; the worst, if several texts name it. */
function mentionsIn(tool: ListedTool, index: NameIndex): Mention[] {
  if (!wordsOf(tool).some((word) => targetOf(word, tool.server, index) !== undefined)) return [];
  const found = new Map<ListedTool, Mention>();
  for (const original of toolTexts(tool)) {
    const { text } = normalise(original);
    for (const word of text.matchAll(WORD)) {
      if (found.size >= MAX_MENTIONS_PER_TOOL) return [...found.values()];
      const target = targetOf(word[0], tool.server, index);
      if (target === undefined || found.get(target)?.severity === "medium") continue;
      const around = text.slice(Math.max(0, word.index - ORDERING_NEAR), word.index + word[0].length + ORDERING_NEAR);
      const severity = ORDERING.test(around) ? "medium" : "low";
      if (severity === "low" && found.has(target)) continue;
      found.set(target, {
        kind: "mention",
        severity,
        tool: { server: tool.server, name: tool.name },
        target: { server: target.server, name: target.name },
        excerpt: around.replace(/\s+/g, " ").trim(),
      });
    }
  }
  return [...found.values()];
}

/** The word itself, or the part after the server in `files/read_file` and `files.read_file`. */
function targetOf(word: string, speaker: string, index: NameIndex): ListedTool | undefined {
  const name = word.replace(/(?<![./:-])[./:-]+$/, "");
  const whole = index.find(name, speaker);
  const cut = Math.max(name.lastIndexOf("/"), name.lastIndexOf("."), name.lastIndexOf(":"));
  return whole !== undefined || cut === -1 ? whole : index.find(name.slice(cut + 1), speaker);
}

/** A name that is not a plain word: it has a separator, a digit, an inner capital, or length. */
function isDistinctive(name: string): boolean {
  if (/[A-Za-z0-9][_./:-]+[A-Za-z0-9]|[a-z][A-Z]|\d/.test(name)) return name.length >= MIN_NAME_LENGTH;
  return name.length > MIN_PLAIN_LENGTH + 4;
}

export function listedTool({
  name,
  origin,
  definition,
}: Pick<ToolCapability, "name" | "origin" | "definition">): ListedTool {
  const { name: _name, description, ...rest } = definition;
  return {
    server: origin.source,
    name: origin.name,
    publicName: name,
    ...(typeof description === "string" ? { description } : {}),
    texts: definitionTexts(rest),
    definition,
  };
}

/** With an explicit stack, since the server chooses the depth. */
function definitionTexts(definition: unknown): string[] {
  const texts: string[] = [];
  const pending = [definition];
  while (pending.length > 0 && texts.length < MAX_TEXTS) {
    const value = pending.pop();
    if (typeof value === "string") texts.push(value);
    else if (Array.isArray(value)) pending.push(...value.slice(0, MAX_TEXTS));
    else if (typeof value === "object" && value !== null) pending.push(...Object.values(value).slice(0, MAX_TEXTS));
  }
  return texts;
}

const MIN_SIMILAR_LENGTH = 6;
const MAX_SIMILAR_LENGTH = 128;
/** A text that more names than these share says nothing: numbered families of tools look like this. */
const MAX_FAMILY_SIZE = 8;
const MAX_PAIRS_PER_NAME = 50;

/** Linear in the total length of names: they are looked up in an index, never compared pair by pair. */
function similarNames(tools: readonly ListedTool[]): SimilarName[] {
  const byPlain = Map.groupBy(tools, ({ name }) => plainName(name));
  const found: SimilarName[] = [];
  for (const group of byPlain.values()) {
    // The same letters are common between honest servers; the same look with other letters is not.
    found.push(...acrossServers(group, group.slice(1), (a, b) => (a === b ? "low" : "medium")));
  }

  // Two names that differ by one letter, or by two that changed places, share a text with one letter left out.
  const byHole = new Map<string, string[]>();
  const compared = new Set<string>();
  for (const [plain, group] of byPlain) {
    if (plain.length < MIN_SIMILAR_LENGTH || plain.length > MAX_SIMILAR_LENGTH) continue;
    for (const hole of deletionsOf(plain)) {
      const others = byHole.get(hole);
      if (others === undefined) {
        byHole.set(hole, [plain]);
        continue;
      }
      if (others.length >= MAX_FAMILY_SIZE || others.includes(plain)) continue;
      for (const other of others) {
        const pair = `${other}\n${plain}`;
        if (compared.has(pair) || !isOneEditAway(other, plain)) continue;
        compared.add(pair);
        found.push(...acrossServers(byPlain.get(other) ?? [], group, () => "low"));
      }
      others.push(plain);
    }
  }
  return found;
}

/** Each of `tools` against the first target that another server has. */
function acrossServers(
  targets: readonly ListedTool[],
  tools: readonly ListedTool[],
  severity: (target: string, tool: string) => Severity,
): SimilarName[] {
  const [first] = targets;
  const second = targets.find(({ server }) => server !== first?.server);
  return tools.slice(0, MAX_PAIRS_PER_NAME).flatMap(({ server, name }): SimilarName[] => {
    const target = first?.server === server ? second : first;
    if (target === undefined) return [];
    return [
      {
        kind: "similar_name",
        severity: severity(target.name, name),
        tool: { server, name },
        target: { server: target.server, name: target.name },
      },
    ];
  });
}

/** Look-alikes, case and separators folded away. */
function plainName(name: string): string {
  return normalise(name)
    .text.replace(/[^\p{L}\p{N}]+/gu, "")
    .replaceAll("0", "o")
    .replaceAll("1", "l");
}

function* deletionsOf(name: string): Generator<string> {
  yield name;
  for (let at = 0; at < name.length; at += 1) yield name.slice(0, at) + name.slice(at + 1);
}
