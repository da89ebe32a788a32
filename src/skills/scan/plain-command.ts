/** Shell quoting, escapes and variables undone as far as one line tells: `c''u\rl $U` is a download like any other. */

export type Variables = ReadonlyMap<string, string>;

const MOST_VARIABLES = 500;
const LONGEST = 4_000;

/** `name=value`, `const name = "value"`, `$name = 'value'`, `set name=value`. */
const ASSIGNMENT =
  /(?:^|[\s;&(,])\$?([a-z_][a-z0-9_]{0,40})\s{0,3}:?=\s{0,3}(?:"([^"\n]{1,300})"|'([^'\n]{1,300})'|`([^`\n]{1,300})`|([^\s"'`;&|()]{1,300}))/g;

/** The first of the values that a loop goes over stands for all. */
const LOOP = /\bfor\s{1,3}([a-z_]\w{0,40})\s{1,3}in\s{1,3}["']?([^\s"';]{1,200})/;

export function collectVariables(texts: readonly string[]): Variables {
  const variables = new Map<string, string>();
  for (const text of texts) {
    const loop = LOOP.exec(text);
    if (loop !== null && !variables.has(loop[1] ?? "")) variables.set(loop[1] ?? "", loop[2] ?? "");
    if (!text.includes("=")) continue;
    for (const [, name = "", double, single, tick, bare] of text.matchAll(ASSIGNMENT)) {
      const value = double ?? single ?? tick ?? bare;
      if (value !== undefined && !variables.has(name)) variables.set(name, value);
      if (variables.size >= MOST_VARIABLES) return variables;
    }
  }
  return variables;
}

const NEEDS_WORK = /['"`\\^$%{+]/;
const REFERENCE =
  /\$\{?([a-z_][a-z0-9_]{0,40})(?::-[^}\n]{0,100})?\}?|%([a-z_][a-z0-9_]{0,40})%|\{([a-z_][a-z0-9_]{0,40})\}/g;
const ESCAPED = /\\x([0-9a-f]{2})|\\u00([0-9a-f]{2})|\\u\{([0-9a-f]{1,6})\}|\\([01][0-7]{2})/g;

/** `text` is in lower case. */
export function plainCommand(text: string, variables: Variables): string {
  if (!NEEDS_WORK.test(text)) return text;
  let plain = text;
  if (plain.includes("\\"))
    plain = plain
      .replace(ESCAPED, (_, hex?: string, short?: string, long?: string, octal?: string) =>
        character(octal === undefined ? Number.parseInt(hex ?? short ?? long ?? "20", 16) : Number.parseInt(octal, 8)),
      )
      .replace(/\\[nrt](?![a-z])|\\[nrt](?=curl|wget|bash|sh\b|python|powershell|nc\b)/g, " ");
  plain = plain
    .replace(/\$\{?ifs\}?/g, " ")
    .replace(/["'`]\s{0,3}\+\s{0,3}["'`]/g, "")
    .replace(/["'],\s{0,3}["']/g, " ")
    .replace(/\$[@*](?=\w)|\$\{@\}/g, "");
  for (let round = 0; round < 2 && variables.size > 0 && plain.length < LONGEST; round += 1) {
    const before = plain;
    plain = plain.replace(REFERENCE, (found, shell?: string, cmd?: string, braces?: string) => {
      return variables.get(shell ?? cmd ?? braces ?? "") ?? found;
    });
    if (plain === before) break;
  }
  return plain
    .slice(0, 2 * LONGEST)
    .replace(/(?<=\w)(?:''|""|["'`^])(?=\w)/g, "")
    .replace(/(?<=[a-z])\\(?=[a-z])/g, "")
    .replace(/\\(?=["'|$`<>&;(])/g, "");
}

function character(codePoint: number): string {
  return codePoint >= 0x20 && codePoint < 0x7f ? String.fromCharCode(codePoint).toLowerCase() : " ";
}
