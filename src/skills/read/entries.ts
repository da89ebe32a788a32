/** Cuts a damaged mapping into its top-level entries, so that one bad entry spoils only itself. */

export interface Entry {
  readonly key: string;
  /** All lines of the entry, its key's included. */
  readonly lines: readonly string[];
  /** Index of the first line in the text. */
  readonly start: number;
}

export interface Cut {
  readonly entries: readonly Entry[];
  /** Lines that belong to no entry, as indexes. */
  readonly stray: readonly number[];
  /** Lines at the margin that were taken as going on with the entry above. */
  readonly joined: readonly number[];
  /** Keys without the colon and space that YAML wants. */
  readonly colons: readonly number[];
}

const KEY = /^(?:"([^"\n]+)"|'([^'\n]+)'|([A-Za-z_][\w.-]*(?: [\w.-]+){0,2}))[ \t]*:(?=[ \t]|$)(.*)$/;
/** Words that are surely meant as keys, so that a colon without its space can be forgiven. */
const LOOSE_KEY =
  /^(name|description|version|license|author|homepage|compatibility|metadata|allowed-tools)[ \t]*[:：][ \t]*(.*)$/i;

interface Line {
  readonly key: string;
  readonly rest: string;
}

export function readKey(line: string): Line | undefined {
  const match = KEY.exec(line);
  return match === null ? undefined : { key: match[1] ?? match[2] ?? match[3] ?? "", rest: match[4] ?? "" };
}

export function cutEntries(text: string): Cut {
  const lines = text.split(/\r?\n/);
  const margin = marginOf(lines);
  const moved = lines.map((line) => (line.slice(0, margin).trim() === "" ? line.slice(margin) : line));
  // A bracket that nobody closes must not swallow all that follows.
  return cut(moved, true) ?? cut(moved, false) ?? { entries: [], stray: [], joined: [], colons: [] };
}

/** @returns undefined if brackets count and one stays open. */
function cut(lines: readonly string[], brackets: boolean): Cut | undefined {
  const entries: { key: string; lines: string[]; start: number }[] = [];
  const [stray, joined, colons]: [number[], number[], number[]] = [[], [], []];
  let open = 0;
  for (const [index, line] of lines.entries()) {
    const current = entries.at(-1);
    if (open > 0 && current !== undefined) {
      open += depthOf(line);
      current.lines.push(line);
      continue;
    }
    const key = readKey(line) ?? readLooseKey(line);
    if (key !== undefined) {
      if (readKey(line) === undefined) colons.push(index);
      open = brackets && /^[ \t]*[[{]/.test(key.rest) ? depthOf(key.rest) : 0;
      entries.push({
        key: key.key,
        lines: [readKey(line) === undefined ? `${key.key}: ${key.rest}` : line],
        start: index,
      });
    } else if (current === undefined) {
      if (line.trim() !== "" && !line.startsWith("#")) stray.push(index);
    } else if (line.trim() === "" || /^(?:[ \t]|#|-(?:[ \t]|$))/.test(line)) current.lines.push(line);
    else {
      joined.push(index);
      current.lines.push(`  ${line}`);
    }
  }
  return open > 0 ? undefined : { entries, stray, joined, colons };
}

function readLooseKey(line: string): Line | undefined {
  const match = LOOSE_KEY.exec(line);
  return match === null ? undefined : { key: match[1] ?? "", rest: match[2] ?? "" };
}

/** Everything is moved in by the same amount in files that were pasted from a list or a quotation. */
function marginOf(lines: readonly string[]): number {
  const first = lines.find((line) => line.trim() !== "");
  return first === undefined ? 0 : first.length - first.trimStart().length;
}

/** How many brackets a line opens, less those that it closes. Brackets in quotes are text. */
function depthOf(line: string): number {
  let depth = 0;
  let quote = "";
  for (let at = 0; at < line.length; at += 1) {
    const char = line[at] ?? "";
    if (quote !== "") {
      if (char === "\\" && quote === '"') at += 1;
      else if (char === quote) quote = "";
    } else if (char === '"' || char === "'") quote = char;
    else if (char === "{" || char === "[") depth += 1;
    else if (char === "}" || char === "]") depth -= 1;
  }
  return depth;
}
