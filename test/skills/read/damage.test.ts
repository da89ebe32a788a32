import { describe, expect, it } from "vitest";
import { codes, parse } from "./support.ts";

interface Damage {
  readonly what: string;
  readonly text: string | Uint8Array;
  /** Each warning as `CODE:line`. */
  readonly warnings: readonly string[];
  readonly name?: string;
  readonly description?: string;
  readonly body?: string;
}

const GOOD = { name: "tides", description: "Says when it is high water." };
const BODY = "Ask for the harbour.\n";
const front = (lines: string): string => `---\n${lines}\n---\n${BODY}`;
const rest = "name: tides\ndescription: Says when it is high water.";

const DAMAGES: readonly Damage[] = [
  { what: "a byte order mark", text: `\uFEFF${front(rest)}`, warnings: ["BYTE_ORDER_MARK:1"], ...GOOD },
  {
    what: "UTF-16",
    text: Buffer.from(`\uFEFF${front(rest)}`, "utf16le"),
    warnings: ["NOT_UTF8:1"],
    ...GOOD,
  },
  {
    what: "bytes that are no UTF-8",
    text: Buffer.concat([
      Buffer.from("---\nname: tides\ndescription: Caf"),
      Buffer.from([0xe9]),
      Buffer.from("\n---\nGo.\n"),
    ]),
    warnings: ["BAD_UTF8:3"],
    name: "tides",
    description: "Caf\uFFFD",
    body: "Go.\n",
  },
  { what: "Windows line ends", text: front(rest).replaceAll("\n", "\r\n"), warnings: [], ...GOOD, body: BODY },
  {
    what: "no frontmatter",
    text: `# Tides\n\nSays when it is **high water**.\nAnd low.\n\nMore.\n`,
    warnings: ["FRONTMATTER_MISSING:1", "NAME_FROM_FOLDER:1", "DESCRIPTION_FROM_BODY:3"],
    name: "harbour",
    description: "Says when it is high water. And low.",
  },
  {
    what: "a rule at the top of a page without frontmatter",
    text: `---\n\nSome prose.\n\n---\n\nMore prose.\n`,
    warnings: ["NAME_FROM_FOLDER:1", "FRONTMATTER_UNREADABLE:2", "DESCRIPTION_FROM_BODY:3"],
    name: "harbour",
    description: "Some prose.",
    body: "---\n\nSome prose.\n\n---\n\nMore prose.\n",
  },
  {
    what: "empty frontmatter",
    text: `---\n---\n${BODY}`,
    warnings: ["FRONTMATTER_EMPTY:1", "NAME_FROM_FOLDER:1", "DESCRIPTION_FROM_BODY:3"],
    description: "Ask for the harbour.",
    body: BODY,
  },
  {
    what: "frontmatter that never ends",
    text: `---\n${rest}\n\n# Tides\n\n${BODY}`,
    warnings: ["FRONTMATTER_UNTERMINATED:3"],
    ...GOOD,
    body: `\n# Tides\n\n${BODY}`,
  },
  {
    what: "frontmatter that seems to end at a rule in the body",
    text: `---\n${rest}\n\n# Tides\n\nAsk which harbour it is.\n\n---\n\nMore.\n`,
    warnings: ["FRONTMATTER_UNTERMINATED:3"],
    ...GOOD,
    body: "\n# Tides\n\nAsk which harbour it is.\n\n---\n\nMore.\n",
  },
  { what: "no first mark", text: `${rest}\n---\n${BODY}`, warnings: ["FRONTMATTER_NOT_OPENED:1"], ...GOOD, body: BODY },
  {
    what: "blank lines before the first mark",
    text: `\n\n${front(rest)}`,
    warnings: ["FRONTMATTER_NOT_FIRST:1"],
    ...GOOD,
  },
  {
    what: "marks of more dashes",
    text: `-----\n${rest}\n-----\n${BODY}`,
    warnings: ["FRONTMATTER_MARK:1", "FRONTMATTER_MARK:4"],
    ...GOOD,
    body: BODY,
  },
  {
    what: "a mark that an editor made a dash of",
    text: `---\n${rest}\n—\n${BODY}`,
    warnings: ["FRONTMATTER_MARK:4"],
    ...GOOD,
    body: BODY,
  },
  {
    what: "a code fence around the frontmatter",
    text: `\`\`\`yaml\n${front(rest).replace(BODY, "")}\`\`\`\n${BODY}`,
    warnings: ["FRONTMATTER_FENCED:1"],
    ...GOOD,
    body: BODY,
  },
  {
    what: "frontmatter that says it is YAML",
    text: `---yaml\n${rest}\n---\n${BODY}`,
    warnings: ["FRONTMATTER_LANGUAGE:1"],
    ...GOOD,
    body: BODY,
  },
  {
    what: "frontmatter that says it is JSON",
    text: `---json\n{"name": "tides", "description": "Says when it is high water."}\n---\n${BODY}`,
    warnings: ["FRONTMATTER_LANGUAGE:1"],
    ...GOOD,
    body: BODY,
  },
  {
    what: "a colon in a value",
    text: front("name: tides\ndescription: Tides: when it is high water. Use for: harbours"),
    warnings: ["UNQUOTED_COLON:3"],
    name: "tides",
    description: "Tides: when it is high water. Use for: harbours",
    body: BODY,
  },
  {
    what: "a colon in a value of several lines",
    text: front("name: tides\ndescription: Says when it is\n  high water. Use for: harbours\nlicense: MIT"),
    warnings: ["UNQUOTED_COLON:3"],
    description: "Says when it is high water. Use for: harbours",
  },
  {
    what: "a value that begins with a special character",
    text: front("name: tides\ndescription: @harbour tells when it is high water\nlicense: MIT"),
    warnings: ["UNQUOTED_SPECIAL:3"],
    description: "@harbour tells when it is high water",
  },
  {
    what: "a value that begins with a backtick",
    text: front("name: tides\ndescription: `tides` says when it is high water"),
    warnings: ["UNQUOTED_SPECIAL:3"],
    description: "`tides` says when it is high water",
  },
  {
    what: "quotes around half of a value",
    text: front('name: tides\ndescription: "Tides" and harbours\nlicense: MIT'),
    warnings: ["BAD_QUOTES:3"],
    description: '"Tides" and harbours',
  },
  {
    what: "quotes that never end",
    text: front('name: tides\ndescription: "Says when it is high water.\nlicense: MIT'),
    warnings: ["BAD_QUOTES:3"],
    description: "Says when it is high water.",
  },
  {
    what: "tabs for indentation",
    text: front(`${rest}\nmetadata:\n\tauthor: office\n\tversion: "2"`),
    warnings: ["TAB_INDENT:5", "TAB_INDENT:6"],
    ...GOOD,
  },
  {
    what: "uneven indentation",
    text: front(`${rest}\nmetadata:\n    author: office\n  version: "2"\n   area: north`),
    warnings: ["BAD_INDENT:5", "BAD_INDENT:7"],
    ...GOOD,
  },
  {
    what: "a line at the margin that goes on with the one above",
    text: front("name: tides\ndescription: Says when it\nis high water.\nlicense: MIT"),
    warnings: ["LINE_JOINED:4"],
    ...GOOD,
  },
  {
    what: "no space after the colon",
    text: front("name:tides\ndescription: Says when it is high water."),
    warnings: ["COLON_REPAIRED:2"],
    ...GOOD,
  },
  {
    what: "a wide colon",
    text: front("name：tides\ndescription：Says when it is high water."),
    warnings: ["COLON_REPAIRED:2", "COLON_REPAIRED:3"],
    ...GOOD,
  },
  { what: "a doubled key", text: front(`name: waves\n${rest}`), warnings: ["DUPLICATE_KEY:3"], ...GOOD },
  {
    what: "a doubled key in a damaged file",
    text: front(`name: a: b\n${rest}`),
    warnings: ["UNQUOTED_COLON:2", "DUPLICATE_KEY:3"],
    ...GOOD,
  },
  {
    what: "a number for a name",
    text: front("name: 007\ndescription: Says when it is high water."),
    warnings: ["WRONG_TYPE:2"],
    name: "007",
  },
  {
    what: "a list for a description",
    text: front("name: tides\ndescription:\n  - Says when\n  - it is high water."),
    warnings: ["WRONG_TYPE:3"],
    description: "Says when, it is high water.",
  },
  {
    what: "a mapping for a description",
    text: front("name: tides\ndescription:\n  Use when: it is high water"),
    warnings: ["WRONG_TYPE:3"],
    description: "Use when: it is high water",
  },
  {
    what: "words for true and false",
    text: front(`${rest}\nuser-invocable: no\ndisable-model-invocation: 1`),
    warnings: ["WRONG_TYPE:4", "WRONG_TYPE:5"],
    ...GOOD,
  },
  {
    what: "keys in another case",
    text: front("Name: tides\nDescription: Says when it is high water."),
    warnings: ["KEY_RENAMED:2", "KEY_RENAMED:3"],
    ...GOOD,
  },
  {
    what: "a name with blanks",
    text: front("name: High Tides!\ndescription: Water."),
    warnings: ["NAME_CHANGED:2"],
    name: "high-tides",
  },
  {
    what: "a name that is a path",
    text: front("name: ../../etc/passwd\ndescription: Water."),
    warnings: ["NAME_CHANGED:2"],
    name: "etc-passwd",
  },
  {
    what: "a name of nothing but marks",
    text: front("name: '///'\ndescription: Water."),
    warnings: ["NAME_FROM_FOLDER:2"],
    name: "harbour",
  },
  {
    what: "a blank name",
    text: front("name:\ndescription: Water."),
    warnings: ["NAME_FROM_FOLDER:2"],
    name: "harbour",
  },
  {
    what: "no description",
    text: "---\nname: tides\n---\n# High water\n\n- one\n- two\n",
    warnings: ["DESCRIPTION_FROM_BODY:4"],
    description: "High water",
  },
  {
    what: "a description below badges, comments and code",
    text: "---\nname: tides\n---\n<!-- a\nb -->\n![x](y)\n```sh\nrun it\n```\n> When it is high water.\n",
    warnings: ["DESCRIPTION_FROM_BODY:10"],
    description: "When it is high water.",
  },
  {
    what: "metadata as text",
    text: front(`${rest}\nmetadata: '{"author": "office"}'`),
    warnings: ["METADATA_AS_TEXT:4"],
    ...GOOD,
  },
  {
    what: "metadata of text that means nothing",
    text: front(`${rest}\nmetadata: none yet`),
    warnings: ["METADATA_UNREADABLE:4"],
    ...GOOD,
  },
  {
    what: "metadata as a list",
    text: front(`${rest}\nmetadata:\n  - author: office\n  - area: north`),
    warnings: ["WRONG_TYPE:4"],
    ...GOOD,
  },
  {
    what: "metadata as JSON5 that YAML misreads",
    text: front(`${rest}\nmetadata: {\n  // who\n  author:'office',\n}`),
    warnings: ["METADATA_JSON5:4"],
    ...GOOD,
  },
  {
    what: "metadata as JSON5 that YAML cannot read",
    text: front(`${rest}\nmetadata: {\n  "author":'office', /* who: */ "area": "north", }`),
    warnings: ["FLOW_NOT_YAML:4"],
    ...GOOD,
  },
  {
    what: "a tag",
    text: front("name: tides\ndescription: !js/function Says when it is high water."),
    warnings: ["TAG_IGNORED:3"],
    ...GOOD,
  },
  {
    what: "a key that would change the prototype",
    text: front(`${rest}\n__proto__:\n  polluted: yes`),
    warnings: ["KEY_IGNORED:4"],
    ...GOOD,
  },
  {
    what: "a line that belongs to nothing",
    text: front(`what is this\nname: a: b\n${rest}`),
    warnings: ["LINE_IGNORED:2", "UNQUOTED_COLON:3", "DUPLICATE_KEY:4"],
    ...GOOD,
  },
];

describe("damaged files", () => {
  it.each(DAMAGES)("[skill-01a] $what", ({ text, warnings, name, description, body }) => {
    const skill = parse(text);
    expect(skill.warnings.map(({ code, line }) => `${code}:${line}`)).toEqual(warnings);
    if (name !== undefined) expect(skill.name).toBe(name);
    if (description !== undefined) expect(skill.description).toBe(description);
    if (body !== undefined) expect(skill.body).toBe(body);
    for (const { message } of skill.warnings) expect(message).toMatch(/^.{10,200}\.$/);
  });

  it("[skill-01a] keeps what the rest of a damaged file says", () => {
    const skill = parse(
      front(
        "name: tides\ndescription: Tides: high water\nmetadata:\n  author: office\n  note: see: below\nallowed-tools: [Read, Bash]\nversion: 1.10\n",
      ),
    );
    expect(skill.frontmatter["metadata"]).toEqual({ author: "office", note: "see: below" });
    expect(skill).toMatchObject({ allowedTools: ["Read", "Bash"], version: "1.10", author: "office" });
    expect(skill.warnings.map(({ code, line }) => `${code}:${line}`)).toEqual(["UNQUOTED_COLON:3", "UNQUOTED_COLON:6"]);
  });

  it("[skill-01a] a comment between keys is no heading of the body", () => {
    const damaged = parse(front("name: tides\n# About\ndescription: Tides: high water\n\n# More\n\nlicense: MIT"));
    expect(damaged).toMatchObject({ name: "tides", description: "Tides: high water", license: "MIT", body: BODY });
    expect(codes(damaged)).toEqual(["UNQUOTED_COLON"]);
    const open = parse(`---\nname: tides\n# About\ndescription: Water.\n\n# Tides\n\n${BODY}`);
    expect(open).toMatchObject({ name: "tides", description: "Water.", body: `\n# Tides\n\n${BODY}` });
  });

  it("[skill-01a] a bracket that nobody closes spoils only its own entry", () => {
    const skill = parse(front(`argument-hint: [harbour\n${rest}`));
    expect(skill).toMatchObject({ ...GOOD, argumentHint: "[harbour" });
    expect(codes(skill)).toEqual(["UNQUOTED_SPECIAL"]);
  });

  it("[skill-01a] values that mean true and false are read so", () => {
    const skill = parse(front(`${rest}\nuser-invocable: "no"\ndisable-model-invocation: yes`));
    expect(skill).toMatchObject({ userInvocable: false, disableModelInvocation: true });
    expect(parse(front(`${rest}\nuser-invocable: perhaps`)).userInvocable).toBe(true);
  });

  it("[skill-01a] a file that says nothing is a clear error", () => {
    for (const text of ["", "\n \n", "---\nname: tides\n---\n", "---\n---\n"]) {
      expect(() => parse(text)).toThrowError(
        expect.objectContaining({ name: "ToolcribError", code: "invalid_config" }),
      );
    }
  });

  it("[skill-01a] a thousand faults give a hundred warnings and word of the rest", () => {
    const skill = parse(front(`${rest}\n${"tag: x\n".repeat(1000)}`));
    expect(skill.warnings.length).toBeLessThanOrEqual(101);
    expect(codes(skill)).toContain("DUPLICATE_KEY");
    expect(skill.name).toBe("tides");
  });
});
