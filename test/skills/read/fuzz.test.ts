import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ToolcribError } from "../../../src/model/errors.ts";
import { parseSkill } from "../../../src/skills/read/read-skill.ts";

/** A skill, or the reason why there is none; anything else fails the test. */
function outcomeOf(bytes: Uint8Array): "skill" | "refused" {
  try {
    const skill = parseSkill(bytes, "fuzz");
    expect(skill.name).not.toBe("");
    expect(skill.name).not.toMatch(/[/\\\s]|^\./);
    expect(skill.description).not.toBe("");
    for (const { code, line } of skill.warnings) {
      expect(code).toMatch(/^[A-Z][A-Z0-9_]*$/);
      if (line !== undefined) expect(line).toBeGreaterThan(0);
    }
    JSON.stringify(skill.frontmatter);
    return "skill";
  } catch (thrown) {
    if (thrown instanceof ToolcribError) return "refused";
    throw thrown;
  }
}

const TOKENS = [
  ..."--- --- --- ---js ```yaml name: description: metadata: allowed-tools: requires-mcp-servers: openclaw: a b : , - ? [ ] { }".split(
    " ",
  ),
  ..."\" ' # & * &a *a ! !!binary !!set << | > |- >+ % @ ` ~ null true 1.0 1e9 .inf 0x1F 2024-01-01 __proto__: constructor: toString:".split(
    " ",
  ),
  ...[
    "\n",
    "\n",
    "\n",
    "\n  ",
    "\n\t",
    "\r",
    "\r\n",
    " ",
    "  ",
    ": ",
    "\0",
    "\u0085",
    "\u2028",
    "\uFEFF",
    "—",
    "：",
    "🌊",
  ],
  ...[
    "\n---\n",
    "\n# Title\n",
    '{"openclaw": {"requires": {"bins": ["jq"]}}}',
    "{a:'b', /* c */}",
    "${TOKEN}",
    "\n- name: x",
    "\n    command: y",
  ],
];

describe("whatever the bytes", () => {
  it("[skill-01a] [skill-01b] arbitrary bytes give a skill or a clear error", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 400 }), (bytes) => {
        outcomeOf(bytes);
      }),
      { numRuns: 1000 },
    );
  });

  it("[skill-01a] [skill-01b] texts of YAML's own marks give a skill or a clear error", () => {
    const piece = fc.constantFrom(...TOKENS);
    fc.assert(
      fc.property(
        fc.constantFrom("", "---\n", "---\nname: x\n", "\uFEFF---\n"),
        fc.array(piece, { maxLength: 60 }),
        (begin, parts) => {
          outcomeOf(new TextEncoder().encode(begin + parts.join("")));
        },
      ),
      { numRuns: 2000 },
    );
  });

  /** Each is repeated; the time must grow in line with the length, or the bound on frontmatter must cut it. */
  const PATTERNS: readonly string[] = [
    ...[
      "[",
      "{",
      "- ",
      "? ",
      "a: ",
      "a:\n ",
      '"',
      "'",
      "&a ",
      "*a ",
      "!a ",
      "#",
      " ",
      "\t",
      "\n",
      "\r",
      ",",
      "%",
      "`",
      "---",
      "--- ",
    ],
    ...[
      "a: b: c\n",
      "- a: b: c\n",
      "a: 1\n",
      "\ta: b\n",
      'a: "b\n',
      "a: [\n",
      "a: |\n  b\n",
      "word word\n",
      "—\n",
      "<!--",
      "\n\n#",
    ],
  ];

  it.each(PATTERNS)("[skill-01b] %j over and over costs no more than its length allows", { retry: 2 }, (pattern) => {
    const cost = (length: number): number => {
      const body = pattern.repeat(Math.ceil(length / pattern.length));
      const shapes = [
        `---\nname: x\n${body}\n---\nBody`,
        `---\n${body}`,
        `---\nname: x\ndescription: a: ${body}\n\n# T\n---\n`,
      ];
      return shapes.reduce((sum, text) => sum + Math.min(cpuOf(text), cpuOf(text)), 0);
    };
    cost(500);
    // Sixteen times the length: a quadratic cost would be 256 times as much. Generous, for a busy machine.
    expect(cost(8000)).toBeLessThan(Math.max(cost(500), 1000) * 100);
  });
});

/** Microseconds of this thread. */
function cpuOf(text: string): number {
  const bytes = new TextEncoder().encode(text);
  const start = process.threadCpuUsage();
  outcomeOf(bytes);
  const { user, system } = process.threadCpuUsage(start);
  return user + system;
}
