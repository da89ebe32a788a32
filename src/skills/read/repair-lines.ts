/** Small repairs of YAML lines. Each keeps the number of lines, so that warnings name lines of the file. */

export interface Repair {
  readonly code: string;
  readonly message: string;
  /** Index of the line. */
  readonly index: number;
}

export interface Repaired {
  readonly lines: readonly string[];
  readonly repairs: readonly Repair[];
}

/** Indentation, an optional dash, a key with its colon, and the value. */
const PAIR = /^([ \t]*(?:- +)?(?:"[^"]*"|'[^']*'|[\w@./-][\w@./ -]{0,80}?):[ \t]+)(\S.*)$/;
const ITEM = /^([ \t]*- +)(\S.*)$/;
/** Characters with a meaning of their own at the start of a value. */
const SPECIAL = /^(?:[@`%&*!?|>,\]}#[{]|- )/;

export function untab(lines: readonly string[]): Repaired {
  const repairs: Repair[] = [];
  const fixed = lines.map((line, index) => {
    if (!/^ *\t/.test(line) && !/:\t/.test(line)) return line;
    repairs.push({ code: "TAB_INDENT", message: "A tab where YAML wants spaces is read as two spaces.", index });
    return line.replace(/^[ \t]+/, (indent) => indent.replaceAll("\t", "  ")).replace(/:\t+/, ": ");
  });
  return { lines: fixed, repairs };
}

/** Puts quotes around values that YAML reads as something else than text. */
export function quoteValues(lines: readonly string[]): Repaired {
  const repairs: Repair[] = [];
  let block = -1;
  const fixed = lines.map((line, index) => {
    const indent = line.length - line.trimStart().length;
    // The lines of a block of text are not looked at.
    if (block >= 0 && (line.trim() === "" || indent > block)) return line;
    block = -1;
    const match = PAIR.exec(line) ?? ITEM.exec(line);
    const [head, value] = [match?.[1], match?.[2]?.trimEnd()];
    if (head === undefined || value === undefined) return line;
    if (/^[|>][-+0-9]*(?:[ \t]+#.*)?$/.test(value)) {
      block = indent;
      return line;
    }
    const why = whyQuoted(value, "The value");
    if (why === undefined) return line;
    repairs.push({ ...why, index });
    return `${head}${JSON.stringify(withoutQuotes(value))}`;
  });
  return { lines: fixed, repairs };
}

/** @param what The value's name in the message. */
export function whyQuoted(value: string, what: string): Omit<Repair, "index"> | undefined {
  if (/^["']/.test(value)) {
    if (isQuoted(value)) return undefined;
    return {
      code: "BAD_QUOTES",
      message: `${what} goes on outside of its quotes, or they do not end; it is read as text.`,
    };
  }
  // A list or an object in one line is for the parser to judge.
  if (/^[[{].*[\]}],?$/.test(value)) return undefined;
  if (SPECIAL.test(value)) {
    return {
      code: "UNQUOTED_SPECIAL",
      message: `${what} starts with "${value[0]}" and needs quotes; it is read as text.`,
    };
  }
  if (/:(?:[ \t]|$)/.test(value)) {
    return { code: "UNQUOTED_COLON", message: `${what} has a colon in it and needs quotes; it is read as text.` };
  }
  return undefined;
}

/** Quotes right around the value, and none inside that would end it early. */
function isQuoted(value: string): boolean {
  return /^"(?:[^"\\]|\\.)*"(?:[ \t]+#.*)?$/.test(value) || /^'(?:[^']|'')*'(?:[ \t]+#.*)?$/.test(value);
}

/** Text whose quotes stand only at the outside is freed of them; others are part of it. */
export function withoutQuotes(value: string): string {
  const match = /^(["'])(.*)\1$/s.exec(value) ?? /^(["'])([^"']*)$/s.exec(value);
  if (match === null) return value;
  const inner = match[2] ?? "";
  return match[1] === '"' ? inner.replaceAll('\\"', '"') : inner.replaceAll("''", "'");
}

/** Gives every line the indentation of its level where the file uses several for one level. */
export function reindent(lines: readonly string[]): Repaired {
  const repairs: Repair[] = [];
  const levels = [0];
  let opens = true;
  const fixed = lines.map((line, index) => {
    const text = line.trim();
    if (text === "" || text.startsWith("#") || index === 0) return line;
    const indent = line.length - line.trimStart().length;
    while (levels.length > 2 && indent < (levels.at(-1) ?? 0)) levels.pop();
    if (indent > (levels.at(-1) ?? 0) && (opens || levels.length === 1)) levels.push(indent);
    opens = text.endsWith(":") || /^- \S.*:/.test(text);
    const wanted = "  ".repeat(levels.length - 1);
    if (wanted.length !== indent) {
      repairs.push({
        code: "BAD_INDENT",
        message: "The indentation does not fit the lines around; it is evened out.",
        index,
      });
    }
    return wanted + text;
  });
  return { lines: fixed, repairs };
}
