/** Names of different servers that a model, or a person, takes for one another. */
import type { Severity } from "../../model/finding.ts";
import { normalise } from "../detect/normalise.ts";
import type { ListedTool } from "./listed-tool.ts";

export interface SimilarName {
  readonly kind: "similar_name";
  readonly severity: Severity;
  readonly tool: { readonly server: string; readonly name: string };
  /** The one that was listed first. */
  readonly target: { readonly server: string; readonly name: string };
}

const SHORTEST_SIMILAR = 6;
const LONGEST_SIMILAR = 128;
/** A text that more names than these share says nothing: numbered families of tools look like this. */
const LARGEST_FAMILY = 8;
const MOST_PER_NAME = 50;

/** Linear in the total length of names: they are looked up in an index, never compared pair by pair. */
export function similarNames(tools: readonly ListedTool[]): SimilarName[] {
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
    if (plain.length < SHORTEST_SIMILAR || plain.length > LONGEST_SIMILAR) continue;
    for (const hole of holesOf(plain)) {
      const others = byHole.get(hole);
      if (others === undefined) {
        byHole.set(hole, [plain]);
        continue;
      }
      if (others.length >= LARGEST_FAMILY || others.includes(plain)) continue;
      for (const other of others) {
        const pair = `${other}\n${plain}`;
        if (compared.has(pair) || !isOneSlipApart(other, plain)) continue;
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
  return tools.slice(0, MOST_PER_NAME).flatMap(({ server, name }): SimilarName[] => {
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

function* holesOf(name: string): Generator<string> {
  yield name;
  for (let at = 0; at < name.length; at += 1) yield name.slice(0, at) + name.slice(at + 1);
}

/** One letter more, less or other, or two neighbours that changed places. */
function isOneSlipApart(a: string, b: string): boolean {
  if (a === b || Math.abs(a.length - b.length) > 1) return false;
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a.at(-1 - end) === b.at(-1 - end)) end += 1;
  const [mine, other] = [a.slice(start, a.length - end), b.slice(start, b.length - end)];
  if (Math.max(mine.length, other.length) === 1) return true;
  return mine.length === 2 && mine[0] === other[1] && mine[1] === other[0];
}
