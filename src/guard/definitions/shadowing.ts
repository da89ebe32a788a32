/** Tools of one server that reach for those of another: by speaking of them, or by looking like them. */
import type { Severity } from "../../model/finding.ts";
import { normalise } from "../detect/normalise.ts";
import type { ListedTool } from "./listed-tool.ts";
import { type SimilarName, similarNames } from "./similar-names.ts";

export type { ListedTool };

export interface Mention {
  readonly kind: "mention";
  readonly severity: Severity;
  /** The tool whose definition speaks. */
  readonly tool: { readonly server: string; readonly name: string };
  /** The tool of another server that it names. */
  readonly target: { readonly server: string; readonly name: string };
  readonly excerpt: string;
}

export type Shadowing = Mention | SimilarName;

/** Shorter or plainer names are words of the language: "search" in a description names nothing. */
const RAREST_PLAIN = 8;
const ORDERING =
  /\b(?:must|always|never|instead|before|first|do not|don't|not use|rather than|prefer|only use|override|replace[sd]?|deprecated|ignore|whenever|when using|any time|required|important|also call|after)\b/;
const ORDERING_NEAR = 120;
const MOST_PER_TOOL = 50;

/**
 * Linear in the total text: names are looked up in an index, never compared pair by pair.
 * Names of the same server never shadow each other.
 */
export function findShadowing(tools: readonly ListedTool[]): Shadowing[] {
  const index = new NameIndex(tools);
  return [...tools.flatMap((tool) => mentionsIn(tool, index)), ...similarNames(tools)];
}

/** A sentence that the servers' owner may act on. */
export function describeShadowing({ kind, tool, target }: Shadowing): string {
  const other = `${target.name} of the server ${target.server}`;
  if (kind === "mention") return `The definition of ${tool.name} speaks of ${other}.`;
  return `The tool ${tool.name} is called ${tool.name === target.name ? "the same as" : "almost like"} ${other}.`;
}

/** What tools are called: by their server, and by models. */
class NameIndex {
  readonly #byName = new Map<string, { readonly first: ListedTool; readonly servers: Set<string> }>();

  constructor(tools: readonly ListedTool[]) {
    for (const tool of tools) {
      const names = [tool.name, ...(tool.publicName === undefined ? [] : [tool.publicName])];
      for (const name of new Set(names.filter(isTelling).map((each) => normalise(each).text))) {
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
const SHORTEST_TELLING = 5;

/** Reading costs more than looking up, and most tools name no other. */
const wordsOfTools = new WeakMap<ListedTool, readonly string[]>();

function wordsOf(tool: ListedTool): readonly string[] {
  let words = wordsOfTools.get(tool);
  if (words === undefined) {
    const all = textsOf(tool).flatMap((text) => normalise(text).text.match(WORD) ?? []);
    words = [...new Set(all.filter((word) => word.length >= SHORTEST_TELLING))];
    wordsOfTools.set(tool, words);
  }
  return words;
}

function textsOf({ description = "", texts = [] }: ListedTool): readonly string[] {
  return [description, ...texts];
}

/** One for each tool that is named; the worst, if several texts name it. */
function mentionsIn(tool: ListedTool, index: NameIndex): Mention[] {
  if (!wordsOf(tool).some((word) => targetOf(word, tool.server, index) !== undefined)) return [];
  const found = new Map<ListedTool, Mention>();
  for (const original of textsOf(tool)) {
    const { text } = normalise(original);
    for (const word of text.matchAll(WORD)) {
      if (found.size >= MOST_PER_TOOL) return [...found.values()];
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

/** The word as it stands, or what follows the server in `files/read_file` and `files.read_file`. */
function targetOf(word: string, speaker: string, index: NameIndex): ListedTool | undefined {
  const name = word.replace(/(?<![./:-])[./:-]+$/, "");
  const whole = index.find(name, speaker);
  const cut = Math.max(name.lastIndexOf("/"), name.lastIndexOf("."), name.lastIndexOf(":"));
  return whole !== undefined || cut === -1 ? whole : index.find(name.slice(cut + 1), speaker);
}

/** A name that is no plain word: it has a separator, a digit, an inner capital, or length. */
function isTelling(name: string): boolean {
  if (/[A-Za-z0-9][_./:-]+[A-Za-z0-9]|[a-z][A-Z]|\d/.test(name)) return name.length >= SHORTEST_TELLING;
  return name.length > RAREST_PLAIN + 4;
}
