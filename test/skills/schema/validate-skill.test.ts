import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parseSkill } from "../../../src/skills/read/read-skill.ts";
import { PROBLEM_CODES, type SkillProblem, validateSkill } from "../../../src/skills/schema/validate-skill.ts";
import { corpusSkills, HARMLESS_GROUPS } from "../corpus.ts";

const BODY = "\n# Notes\n\nDo the thing.\n";
const MINIMAL = "name: notes\ndescription: Writes notes.\n";

function check(frontmatter: string, strict: boolean, dirName = "notes"): SkillProblem[] {
  const text = frontmatter === "" ? BODY : `---\n${frontmatter}---\n${BODY}`;
  return validateSkill(parseSkill(new TextEncoder().encode(text), dirName), { strict, dirName });
}

const strictly = (frontmatter: string, dirName?: string): [number | undefined, string, string][] =>
  check(frontmatter, true, dirName).map(({ line, code, severity }) => [line, code, severity]);

describe("[skill-04b] [skill-09c] a file that conforms", () => {
  it.each([
    ["the least", MINIMAL],
    [
      "everything that the standard has",
      `${MINIMAL}license: Apache-2.0\ncompatibility: Needs git.\nmetadata:\n  author: Ann\n  version: "1.0"\n` +
        "allowed-tools: Bash(git add:*) Read mcp__files__read\n",
    ],
    ["the longest", `name: ${"a".repeat(64)}\ndescription: ${"é".repeat(1024)}\ncompatibility: ${"c".repeat(500)}\n`],
    ["Windows line ends", MINIMAL.replaceAll("\n", "\r\n")],
  ])("%s gives nothing at all", (_, frontmatter) => {
    const dirName = frontmatter.includes("aaa") ? "a".repeat(64) : "notes";
    expect(check(frontmatter, true, dirName)).toEqual([]);
    expect(check(frontmatter, false, dirName)).toEqual([]);
  });
});

describe("[skill-04b] --strict", () => {
  it.each([
    ["a missing name", "description: x\n", [[1, "MISSING_FIELD"]]],
    ["a missing description", "name: notes\n", [[1, "MISSING_FIELD"]]],
    ["a name without a value", "name:\ndescription: x\n", [[1, "MISSING_FIELD"]]],
    [
      "capitals",
      "name: Notes\ndescription: x\n",
      [
        [2, "INVALID_NAME"],
        [2, "NAME_MISMATCH"],
      ],
    ],
    [
      "an underscore",
      "name: my_notes\ndescription: x\n",
      [
        [2, "INVALID_NAME"],
        [2, "NAME_MISMATCH"],
      ],
    ],
    [
      "a hyphen first",
      "name: -notes\ndescription: x\n",
      [
        [2, "INVALID_NAME"],
        [2, "NAME_MISMATCH"],
      ],
    ],
    [
      "a hyphen last",
      "name: notes-\ndescription: x\n",
      [
        [2, "INVALID_NAME"],
        [2, "NAME_MISMATCH"],
      ],
    ],
    [
      "two hyphens",
      "name: my--notes\ndescription: x\n",
      [
        [2, "INVALID_NAME"],
        [2, "NAME_MISMATCH"],
      ],
    ],
    ["an empty name", 'name: ""\ndescription: x\n', [[2, "INVALID_NAME_LENGTH"]]],
    [
      "a long name",
      `name: ${"a".repeat(65)}\ndescription: x\n`,
      [
        [2, "INVALID_NAME_LENGTH"],
        [2, "NAME_MISMATCH"],
      ],
    ],
    ["another folder", "name: other\ndescription: x\n", [[2, "NAME_MISMATCH"]]],
    ["an empty description", 'name: notes\ndescription: ""\n', [[3, "INVALID_DESCRIPTION_LENGTH"]]],
    ["a blank description", 'name: notes\ndescription: "  "\n', [[3, "INVALID_DESCRIPTION_LENGTH"]]],
    ["a long description", `name: notes\ndescription: ${"x".repeat(1025)}\n`, [[3, "INVALID_DESCRIPTION_LENGTH"]]],
    ["a description as a list", "name: notes\ndescription: [a, b]\n", [[3, "UNQUOTED_SPECIAL"]]],
    ["a long compatibility", `${MINIMAL}compatibility: ${"x".repeat(501)}\n`, [[4, "INVALID_COMPATIBILITY_LENGTH"]]],
    ["a license as a number", `${MINIMAL}license: 2\n`, [[4, "INVALID_TYPE"]]],
    ["metadata with a number", `${MINIMAL}metadata:\n  a: x\n  version: 1.0\n`, [[6, "INVALID_METADATA"]]],
    ["metadata with a map", `${MINIMAL}metadata:\n  openclaw:\n    emoji: x\n`, [[5, "INVALID_METADATA"]]],
    ["metadata as JSON", `${MINIMAL}metadata: '{"a": "b"}'\n`, [[4, "METADATA_AS_TEXT"]]],
    ["metadata as a list", `${MINIMAL}metadata:\n  - a: b\n`, [[4, "WRONG_TYPE"]]],
    ["tools with commas", `${MINIMAL}allowed-tools: Read, Write\n`, [[4, "INVALID_ALLOWED_TOOLS"]]],
    ["tools as a list", `${MINIMAL}allowed-tools: [Read]\n`, [[4, "INVALID_ALLOWED_TOOLS"]]],
    [
      "further fields",
      `${MINIMAL}version: "1"\nuser-invocable: true\n`,
      [
        [4, "UNKNOWN_FIELD"],
        [5, "UNKNOWN_FIELD"],
      ],
    ],
    ["servers that are none", `${MINIMAL}requires-mcp-servers: [7]\n`, [[4, "INVALID_TYPE"]]],
    [
      "another spelling",
      "Name: notes\ndescription: x\n",
      [
        [1, "MISSING_FIELD"],
        [2, "UNKNOWN_FIELD"],
      ],
    ],
    ["a colon without quotes", "name: notes\ndescription: Use when: needed\n", [[3, "UNQUOTED_COLON"]]],
    ["a key twice", `${MINIMAL}license: MIT\nlicense: MIT\n`, [[5, "DUPLICATE_KEY"]]],
  ])("refuses %s", (_, frontmatter, wanted) => {
    expect(strictly(frontmatter)).toEqual(wanted.map((problem) => [...problem, "error"]));
  });

  it("refuses a file without frontmatter", () => {
    expect(
      strictly("")
        .map(([, code]) => code)
        .toSorted(),
    ).toEqual(["FRONTMATTER_MISSING", "MISSING_FIELD", "MISSING_FIELD"]);
  });

  it("does not hold against a file what the standard does not speak of", () => {
    const server = '{"name": "frobnicator"}';
    const problems = check(`${MINIMAL}metadata:\n  requires-mcp-servers: '${server}'\n  openclaw: "no block"\n`, true);
    expect(problems.filter(({ severity }) => severity === "error")).toEqual([]);
  });

  it("has a code of the table for each of its own, and messages without line breaks", () => {
    const problems = check('name: "A\\nB"\ndescription: 5\n"x\\ny": 1\nmetadata: {"a\\nb": 1}\n', true);
    expect(problems.length).toBeGreaterThan(3);
    for (const { code, message } of problems) {
      expect(Object.keys(PROBLEM_CODES)).toContain(code);
      expect(message).not.toContain("\n");
    }
  });
});

describe("[skill-04b] leniently", () => {
  it("nothing that can be read is an error, and each repair is a warning", () => {
    const problems = check(
      "name: My Notes\nuser_invocable: yes please\nallowed-tools: [Read]\nversion: 1.0\nmetadata:\n  openclaw:\n    always: 1\n",
      false,
    );
    expect(problems.map(({ code, severity }) => [code, severity])).toEqual([
      ["MISSING_FIELD", "warning"],
      ["INVALID_NAME", "warning"],
      ["NAME_MISMATCH", "warning"],
      ["KEY_RENAMED", "warning"],
      ["WRONG_TYPE", "warning"],
      ["INVALID_METADATA", "warning"],
    ]);
  });

  it("says what the reader made of it", () => {
    const [missing] = check("description: x\n", false);
    expect(missing).toMatchObject({ code: "MISSING_FIELD", line: 1 });
    expect(missing?.message).toContain('"notes"');
    expect(check("Name: notes\ndescription: x\n", false).map(({ code }) => code)).toEqual(["KEY_RENAMED"]);
  });

  it("dialects are fine", () => {
    const frontmatter = `${MINIMAL}version: 1.2
author: { name: Ann }
argument-hint: "[file]"
user-invocable: false
disable-model-invocation: true
context: fork
hooks: { PreToolUse: [] }
allowed-tools: [Read, "Bash(git:*)"]
command-dispatch: tool
command-tool: files__read
command-arg-mode: raw
homepage:
my-own-key: [1, 2]
metadata:
  openclaw: { emoji: x, os: [linux], requires: { bins: [git], env: [A] }, install: [{ kind: brew }] }
requires-mcp-servers: [memory, { package: "@a/b", args: [1] }]
`;
    expect(check(frontmatter, false)).toEqual([]);
  });

  it("warns of what is unclear in required servers, once and where it stands", () => {
    const problems = check(`${MINIMAL}requires-mcp-servers:\n  - memory\n  - frobnicator\n  - 5\n`, false);
    expect(problems.map(({ line, code }) => [line, code])).toEqual([
      [6, "UNKNOWN_SERVER"],
      [7, "INVALID_TYPE"],
    ]);
  });
});

/** Beside the repository on some machines. */
describe("[skill-04b] the corpus of skills", () => {
  it.each(corpusSkills(HARMLESS_GROUPS).map((skill) => [`${skill.group}/${skill.name}`, skill] as const))(
    "%s is not refused leniently, and strictly only if it is not to the letter",
    (_, { group, name, dir }) => {
      const skill = parseSkill(readFileSync(join(dir, "SKILL.md")), name);
      const isRefused = (strict: boolean): boolean =>
        validateSkill(skill, { strict, dirName: name }).some(({ severity }) => severity === "error");
      // Its servers are in a form that is read and not valid.
      expect(isRefused(false)).toBe(name === "calendar-sync");
      expect(isRefused(true)).toBe(group !== "standard");
    },
  );
});
