/** Which of the skills that were found are meant. */
import { basename, relative, sep } from "node:path";
import { createInterface } from "node:readline/promises";
import { nearest } from "../../config/nearest.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { Invocation } from "../command.ts";

/** What a skill can be called by. */
export interface Choice {
  readonly name: string;
  /** The folder. */
  readonly path: string;
}

const MOST_NAMED = 20;

/** Those that `--select a,b` names: by name, by folder name, or by path below the root where names are not enough. */
export function selectNamed<T extends Choice>(choices: readonly T[], text: string, root: string): T[] {
  const wanted = namesIn(text);
  if (wanted.length === 0) throw new ToolcribError("invalid_arguments", "--select names no skill.");
  const chosen = new Set<T>();
  const unknown: string[] = [];
  for (const name of wanted) {
    const named = matching(choices, name, root);
    if (named.length === 0) unknown.push(name);
    for (const choice of named) chosen.add(choice);
  }
  const [first] = unknown;
  if (first === undefined) return choices.filter((choice) => chosen.has(choice));
  const names = choices.map(({ name }) => name);
  const near = unknown.length === 1 ? nearest(first, names) : undefined;
  throw new ToolcribError("not_found", `There is no skill ${unknown.join(", ")} in ${root}.`, {
    hint: near === undefined ? `Found: ${namesText(names)}.` : `Did you mean ${near}?`,
  });
}

/** Asks until the answer makes sense; empty chooses none. */
export async function askWhich<T extends Choice>(
  { stdin, out }: Invocation,
  choices: readonly T[],
  root: string,
): Promise<T[]> {
  const terminal = createInterface({ input: stdin, output: out.prompts });
  terminal.setPrompt("Import which? [a]ll, numbers or names with commas, empty for none: ");
  terminal.prompt();
  let open = true;
  terminal.once("close", () => (open = false));
  try {
    for await (const typed of terminal) {
      const chosen = parseAnswer(choices, typed, root);
      if (chosen !== undefined) return chosen;
      out.note("That names no skill of the list.");
      // Lines that were typed ahead are still to come after the end of the input.
      if (open) terminal.prompt();
    }
  } finally {
    terminal.close();
  }
  // The end of the input, or Ctrl-C, is an answer too.
  throw new ToolcribError("cancelled", "Nothing was imported.");
}

/** `all`, `1,3-5`, `notes, 4`; undefined for what makes no sense. */
export function parseAnswer<T extends Choice>(choices: readonly T[], typed: string, root: string): T[] | undefined {
  if (/^\s*(a|all)\s*$/i.test(typed)) return [...choices];
  const chosen = new Set<T>();
  for (const word of namesIn(typed)) {
    const named = matching(choices, word, root);
    const picked = named.length > 0 ? named : numbered(choices, word);
    if (picked.length === 0) return undefined;
    for (const choice of picked) chosen.add(choice);
  }
  return choices.filter((choice) => chosen.has(choice));
}

export function namesText(names: readonly string[]): string {
  const more = names.length > MOST_NAMED ? ` and ${names.length - MOST_NAMED} more` : "";
  return names.slice(0, MOST_NAMED).join(", ") + more;
}

function namesIn(text: string): string[] {
  return text
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");
}

function matching<T extends Choice>(choices: readonly T[], word: string, root: string): T[] {
  const byName = choices.filter(({ name }) => name === word);
  if (byName.length > 0) return byName;
  const path = word.replaceAll("/", sep);
  return choices.filter((choice) => basename(choice.path) === word || relative(root, choice.path) === path);
}

function numbered<T>(choices: readonly T[], word: string): T[] {
  const [, from = "", to = from] = /^(\d{1,6})(?:-(\d{1,6}))?$/.exec(word) ?? [];
  const [first, last] = [Number(from), Number(to)];
  if (from === "" || first < 1 || last > choices.length) return [];
  return choices.slice(first - 1, last);
}
