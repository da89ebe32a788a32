/** Tools of one server that reach for those of another: by speaking of them, or by looking like them. */
import type { Severity } from "../../model/finding.ts";
import { normalise } from "../detect/normalise.ts";

export interface ListedTool {
  readonly server: string;
  readonly name: string;
  readonly description?: string;
}

export type Shadowing =
  | {
      readonly kind: "mention";
      readonly severity: Severity;
      /** The tool whose description speaks. */
      readonly tool: { readonly server: string; readonly name: string };
      /** The tool of another server that it names. */
      readonly target: { readonly server: string; readonly name: string };
      readonly excerpt: string;
    }
  | {
      readonly kind: "similar_name";
      readonly severity: Severity;
      readonly tool: { readonly server: string; readonly name: string };
      readonly target: { readonly server: string; readonly name: string };
    };

/** Shorter or plainer names are words of the language: "search" in a description names nothing. */
const RAREST_PLAIN = 8;
const SHORTEST_SIMILAR = 6;
const ORDERING =
  /\b(?:must|always|never|instead|before|first|do not|don't|not use|rather than|prefer|only use|override|replace[sd]?|deprecated|ignore|whenever|when using|any time|required|important|also call|after)\b/;
const ORDERING_NEAR = 120;
const MOST_PER_TOOL = 50;

/**
 * Linear in the total text: names are looked up in an index, never compared pair by pair.
 * Names of the same server never shadow each other.
 */
export function findShadowing(tools: readonly ListedTool[]): Shadowing[] {
  return [...mentions(tools), ...similarNames(tools)];
}

function mentions(tools: readonly ListedTool[]): Shadowing[] {
  const byName = new Map<string, ListedTool[]>();
  for (const tool of tools) {
    if (isTelling(tool.name)) addTo(byName, normalise(tool.name).text, tool);
  }
  const found: Shadowing[] = [];
  for (const tool of tools) {
    const text = normalise(tool.description ?? "").text;
    const seen = new Set<string>();
    for (const word of text.matchAll(/[\p{L}\p{N}_][\p{L}\p{N}_./:-]{0,127}/gu)) {
      const name = word[0].replace(/[./:-]+$/, "");
      if (seen.has(name) || seen.size >= MOST_PER_TOOL) continue;
      const targets = byName.get(name);
      if (targets === undefined || targets.some(({ server }) => server === tool.server)) continue;
      const [target] = targets;
      if (target === undefined) continue;
      seen.add(name);
      const around = text.slice(Math.max(0, word.index - ORDERING_NEAR), word.index + name.length + ORDERING_NEAR);
      found.push({
        kind: "mention",
        severity: ORDERING.test(around) ? "medium" : "low",
        tool: { server: tool.server, name: tool.name },
        target: { server: target.server, name: target.name },
        excerpt: around.replace(/\s+/g, " ").trim(),
      });
    }
  }
  return found;
}

/** A name that is no plain word: it has a separator, a digit, an inner capital, or length. */
function isTelling(name: string): boolean {
  if (/[A-Za-z0-9][_./:-][A-Za-z0-9]|[a-z][A-Z]|\d/.test(name)) return name.length >= 5;
  return name.length > RAREST_PLAIN + 4;
}

function similarNames(tools: readonly ListedTool[]): Shadowing[] {
  const byPlain = new Map<string, ListedTool[]>();
  for (const tool of tools) addTo(byPlain, plainName(tool.name), tool);
  const found: Shadowing[] = [];
  for (const group of byPlain.values()) found.push(...acrossServers(group, () => "medium"));

  // Two names at distance one share a text with one letter left out: such texts are the index.
  const byHole = new Map<string, string[]>();
  const reported = new Set<string>();
  for (const plain of byPlain.keys()) {
    if (plain.length < SHORTEST_SIMILAR || plain.length > 128) continue;
    for (const hole of holesOf(plain)) {
      const others = byHole.get(hole);
      if (others === undefined) {
        byHole.set(hole, [plain]);
        continue;
      }
      // A hole that many names share says nothing: numbered families of tools look like this.
      if (others.length >= 8 || others.includes(plain)) continue;
      for (const other of others) {
        const pair = `${other}\n${plain}`;
        if (reported.has(pair) || !isOneApart(other, plain)) continue;
        reported.add(pair);
        found.push(
          ...acrossServers([...(byPlain.get(other) ?? []), ...(byPlain.get(plain) ?? [])], (a, b) =>
            plainName(a) === plainName(b) ? undefined : "low",
          ),
        );
      }
      others.push(plain);
    }
  }
  return found;
}

/** The first tool of the group against those of other servers. */
function acrossServers(
  group: readonly ListedTool[],
  severity: (a: string, b: string) => Severity | undefined,
): Shadowing[] {
  const found: Shadowing[] = [];
  const [first] = group;
  if (first === undefined) return found;
  for (const other of group.slice(1, MOST_PER_TOOL)) {
    const level = severity(first.name, other.name);
    if (other.server === first.server || level === undefined) continue;
    found.push({
      kind: "similar_name",
      // The same letters are common between honest servers; the same look with other letters is not.
      severity: first.name === other.name ? "low" : level,
      tool: { server: other.server, name: other.name },
      target: { server: first.server, name: first.name },
    });
  }
  return found;
}

/** Look-alikes, case and separators folded away. */
function plainName(name: string): string {
  return normalise(name)
    .text.replace(/[^\p{L}\p{N}]+/gu, "")
    .replaceAll("0", "o")
    .replaceAll("1", "l");
}

function* holesOf(name: string): Generator<string> {
  yield name;
  for (let at = 0; at < name.length; at += 1) yield name.slice(0, at) + name.slice(at + 1);
}

/** Edit distance of exactly one. */
function isOneApart(a: string, b: string): boolean {
  if (a === b || Math.abs(a.length - b.length) > 1) return false;
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a.at(-1 - end) === b.at(-1 - end)) end += 1;
  return Math.max(a.length, b.length) - start - end === 1;
}

function addTo(index: Map<string, ListedTool[]>, key: string, tool: ListedTool): void {
  const known = index.get(key);
  if (known === undefined) index.set(key, [tool]);
  else known.push(tool);
}
