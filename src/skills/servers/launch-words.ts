/** A command with its arguments, in the ways in which people write one. */
import { type Field, scalarText, shown, textOf, type Warn, warnOfType } from "./fields.ts";
import { registryOf } from "./package-reference.ts";

/** Programs that a whole command line may begin with, besides those that fetch packages. */
const PROGRAMS = new Set(["node", "deno", "python", "python3", "docker", "podman", "uv", "java", "go", "cmd"]);

export function beginsCommandLine(program: string): boolean {
  return registryOf(program) !== undefined || PROGRAMS.has(program.toLowerCase());
}

/** A program, a list that begins with one, or a whole command line of a program that is known here. */
export function commandWords(field: Field | undefined, warn: Warn): string[] {
  if (field === undefined) return [];
  if (Array.isArray(field.value)) return wordList(field, warn);
  const text = textOf(field, warn);
  if (text === undefined) return [];
  const words = text.split(/\s+/);
  const [first = ""] = words;
  // A path may have spaces in it.
  if (words.length === 1 || !beginsCommandLine(first)) return [text];
  const message = `The command holds its arguments; ${JSON.stringify(shown(first))} is taken as the program.`;
  warn("COMMAND_LINE", message, field.path);
  return words;
}

export function wordList(field: Field, warn: Warn): string[] {
  if (typeof field.value === "string") {
    const words = field.value.split(/\s+/).filter((word) => word !== "");
    if (words.length > 1)
      warn("INVALID_TYPE", "Found a text where a list is expected; it is cut at spaces.", field.path);
    return words;
  }
  if (!Array.isArray(field.value)) {
    warnOfType(field, "a list of texts", warn);
    return [];
  }
  return field.value.flatMap((item: unknown, index) => {
    // Space around an argument may be meant.
    const text = typeof item === "string" ? item : scalarText(item);
    if (text === undefined) warnOfType({ value: item, path: [...field.path, index] }, "a text", warn);
    return text ?? [];
  });
}
