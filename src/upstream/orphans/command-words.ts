/** A command line as a set of words, by which a process is known again after a launcher renamed or replaced itself. */
import { hash } from "node:crypto";

export interface CommandWords {
  /** Every word of it. */
  readonly all: readonly string[];
  /** Those that hardly another program has. */
  readonly telling: readonly string[];
}

/** Interpreters and launchers: half the processes of a machine have one of these in their command line. */
const COMMON = new Set(
  "bash bin bun bunx cmd deno dist docker env exec home index.js local main.js node npm npx pnpm podman python python3 run server sh src start usr uv uvx yarn zsh".split(
    " ",
  ),
);

/** Hashed, because arguments may hold secrets and the words are written to disk. */
export function wordsOf(...commands: readonly string[]): CommandWords {
  const all = new Set<string>();
  const telling = new Set<string>();
  for (const part of commands.flatMap((command) => command.split(/\s+/))) {
    for (const word of part.split(/[/\\=:]+/)) if (word.length > 1 && !word.startsWith("-")) all.add(digest(word));
    // Only the last part of a path: the folders above it are shared with strangers.
    const name = part.split(/[/\\]/).at(-1) ?? "";
    if (name.length > 3 && !name.startsWith("-") && !COMMON.has(name)) telling.add(digest(name));
  }
  return { all: [...all], telling: [...telling] };
}

export function shareWord(left: readonly string[], right: readonly string[]): boolean {
  return left.some((word) => right.includes(word));
}

function digest(word: string): string {
  return hash("sha256", word).slice(0, 16);
}
