import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { readSkill, splitTools } from "../../../src/skills/read/read-skill.ts";
import { codes, FIXTURES, parse } from "./support.ts";

const front = (lines: string): string => `---\nname: tides\ndescription: Water.\n${lines}\n---\nGo.\n`;

describe("the Agent Skills standard", () => {
  it("[skill-02a] [skill-09c] a conforming skill is read whole and without a warning", async () => {
    const skill = await readSkill(join(FIXTURES, "tide-tables"));
    expect(skill.warnings).toEqual([]);
    expect(skill).toMatchObject({
      name: "tide-tables",
      dialect: "agent-skills",
      license: "MIT",
      compatibility: "Needs network access and Python 3.11",
      author: "harbour-office",
      version: "1.4",
      allowedTools: ["Read", "Bash(python3 scripts/tides.py:*)", "WebFetch"],
      disableModelInvocation: false,
      userInvocable: true,
      always: false,
      needs: { bins: [], anyBins: [], env: [], config: [], os: [] },
      servers: [],
      extensions: {},
    });
    expect(skill.description).toMatch(/^Reads tide tables .* departure times\.$/);
    expect(skill.body).toMatch(/^\n# Tide tables\n/);
    expect(skill.files.map(({ path }) => path)).toEqual(["SKILL.md", "references/units.md", "scripts/tides.py"]);
  });

  it("[skill-02a] [skill-09c] every optional field and every way to write text may be there without a warning", () => {
    const texts = [
      "description: >\n  Says when\n  it is high water.\n\n  And low.",
      "description: |\n  Says when it is high water.",
      'description: "Tides: when it is high water. \\"Now\\" # too"',
      "description: 'It''s high water: now'",
      "description: Says when it is\n  high water.",
      "description: Water.\nmetadata:\n  version: 1.0\n  # who\n  author: office\nlicense: Apache-2.0 # see LICENSE",
      "description: Water.\nmetadata: {}\nallowed-tools: Bash(git:*) Bash(jq:*) Read",
      "description: 水位を教えます。",
    ];
    for (const text of texts) expect(parse(`---\nname: tides\n${text}\n---\n\nGo.\n`).warnings).toEqual([]);
    expect(parse("---\nname: tides\ndescription: Water.\n---").warnings).toEqual([]);
    expect(parse("---\r\nname: tides\r\ndescription: Water.\r\n---\r\n\r\nGo.\r\n").warnings).toEqual([]);
  });

  it("[skill-02a] keys that nobody knows are kept, and no reason for a warning", () => {
    const skill = parse(front("tags: [water, ships]\nzone: 4"));
    expect(skill.warnings).toEqual([]);
    expect(skill.frontmatter).toEqual({ name: "tides", description: "Water.", tags: ["water", "ships"], zone: 4 });
    expect(skill.dialect).toBe("agent-skills");
  });

  it("[skill-02a] allowed-tools is text or a list, and brackets hold together", () => {
    expect(splitTools("Read, Write,Bash(git add:*) Bash(npm run test, npm run lint)  mcp__x__y")).toEqual([
      "Read",
      "Write",
      "Bash(git add:*)",
      "Bash(npm run test, npm run lint)",
      "mcp__x__y",
    ]);
    expect(splitTools("Bash(git add")).toEqual(["Bash(git add"]);
    expect(parse(front('allowed-tools:\n  - Read\n  - "Bash(git add:*)"')).allowedTools).toEqual([
      "Read",
      "Bash(git add:*)",
    ]);
    expect(parse(front("allowed-tools: []")).allowedTools).toEqual([]);
  });

  it("a version keeps the zero that YAML drops, wherever it stands", () => {
    expect(parse(front("version: 1.10")).version).toBe("1.10");
    expect(parse(front("metadata:\n  version: 2.0")).version).toBe("2.0");
    expect(parse(front('metadata: {"version": 3.10}')).version).toBe("3.10");
    expect(parse(front("version: 1.2.3")).version).toBe("1.2.3");
  });
});

describe("Claude Code's extensions", () => {
  it("[skill-02b] flags, hint and further fields, which are shown in camel case", async () => {
    const skill = await readSkill(join(FIXTURES, "release-notes"));
    expect(skill.warnings).toEqual([]);
    expect(skill).toMatchObject({
      dialect: "claude-code",
      disableModelInvocation: true,
      userInvocable: true,
      argumentHint: "[from-tag] [to-tag]",
      allowedTools: ["Bash(git log:*)", "Bash(git tag --list)", "Read"],
      extensions: { context: "fork", agent: "Explore", model: "haiku", whenToUse: "Before a release, never after it." },
    });
    expect(skill.extensions["hooks"]).toMatchObject({ PostToolUse: [{ matcher: "Bash" }] });
    expect(skill.body).toContain("between $1 and $2");
  });

  it("[skill-02b] an argument hint in brackets is text, not a list", () => {
    const skill = parse(front("argument-hint: [file] "));
    expect(skill.argumentHint).toBe("[file]");
    expect(skill.dialect).toBe("claude-code");
  });

  it("[skill-02b] other spellings of keys are understood and told of", () => {
    const skill = parse(front("userInvocable: false\ndisable_model_invocation: true"));
    expect(skill).toMatchObject({ userInvocable: false, disableModelInvocation: true, dialect: "claude-code" });
    expect(codes(skill)).toEqual(["KEY_RENAMED", "KEY_RENAMED"]);
  });
});

describe("OpenClaw", () => {
  it("[skill-02c] the block says needs, install steps and more", async () => {
    const skill = await readSkill(join(FIXTURES, "garden-camera"));
    expect(skill.warnings).toEqual([]);
    expect(skill).toMatchObject({
      dialect: "openclaw",
      emoji: "🐦",
      homepage: "https://garden.example/camera",
      skillKey: "garden",
      primaryEnv: "GARDEN_TOKEN",
      always: false,
      needs: {
        bins: ["ffmpeg"],
        anyBins: ["curl", "wget"],
        env: ["GARDEN_TOKEN"],
        config: ["plugins.garden.enabled"],
        os: ["darwin", "linux", "win32"],
      },
      install: [
        { kind: "brew", label: "Install ffmpeg (brew)", bins: ["ffmpeg"], step: { formula: "ffmpeg" } },
        { kind: "download", bins: [], step: { url: "https://garden.example/tool.tgz" } },
      ],
    });
    expect(skill.body).toContain("{baseDir}/scripts/snap.sh");
  });

  it.each(["openclaw", "clawdbot", "clawdis", "moltbot"])("[skill-02c] metadata.%s", (vendor) => {
    const block = '{"emoji": "🌊", "always": true, "requires": {"bins": ["jq"], "any-bins": ["a", "b"]}}';
    for (const metadata of [
      `metadata: {"${vendor}": ${block}}`,
      `metadata:\n  ${vendor}: ${block}`,
      // The standard allows only text there.
      `metadata:\n  ${vendor}: '${block}'`,
    ]) {
      const skill = parse(front(metadata));
      expect(skill.warnings).toEqual([]);
      expect(skill).toMatchObject({
        dialect: "openclaw",
        emoji: "🌊",
        always: true,
        needs: { bins: ["jq"], anyBins: ["a", "b"] },
      });
    }
  });

  it("[skill-02c] the present name wins over a former one, and JSON in text is read with a warning", () => {
    const skill = parse(front(`metadata: '{clawdbot: {emoji: "a"}, openclaw: {emoji: "b"}}'`));
    expect(skill).toMatchObject({ emoji: "b", dialect: "openclaw" });
    expect(codes(skill)).toEqual(["METADATA_AS_TEXT"]);
    expect(skill.frontmatter["metadata"]).toEqual({ clawdbot: { emoji: "a" }, openclaw: { emoji: "b" } });
  });

  it("[skill-02c] needs in unusual forms", () => {
    const needs = (block: string) => parse(front(`metadata:\n  openclaw: ${block}`)).needs;
    expect(needs("{requires: {bins: jq}}").bins).toEqual(["jq"]);
    expect(needs("{requires: {bins: 'jq, curl'}}").bins).toEqual(["jq", "curl"]);
    expect(needs("{requires: {env: [{name: TOKEN, required: true}]}}").env).toEqual(["TOKEN"]);
    expect(needs("{requires: {env: {TOKEN: the token, REGION: where}}}").env).toEqual(["TOKEN", "REGION"]);
    expect(needs("{os: Windows}").os).toEqual(["win32"]);
    expect(needs("{os: [any, linux]}").os).toEqual([]);
    expect(needs("{requires: {os: [macOS]}}").os).toEqual(["darwin"]);
    expect(needs("{config: {stateDirs: [x]}}").config).toEqual([]);
    expect(parse(front("requires:\n  bins: [jq]\nos: [mac]")).needs).toMatchObject({ bins: ["jq"], os: ["darwin"] });
  });

  it("[skill-02c] hands over to a tool", async () => {
    const skill = await readSkill(join(FIXTURES, "dispatch-timer"));
    expect(skill).toMatchObject({
      dialect: "openclaw",
      dispatch: { tool: "timer__start", argMode: "raw" },
      warnings: [],
    });
    expect(codes(parse(front("command-dispatch: tool")))).toEqual(["DISPATCH_WITHOUT_TOOL"]);
    const unknown = parse(front("command-dispatch: shell\ncommand-tool: x"));
    expect(unknown.dispatch).toBeUndefined();
    expect(codes(unknown)).toEqual(["DISPATCH_UNKNOWN"]);
  });

  it("[skill-02c] a block that is no mapping is told of", () => {
    const skill = parse(front("metadata:\n  openclaw: [1, 2]"));
    expect(skill.dialect).toBe("agent-skills");
    expect(skill.warnings).toEqual([expect.objectContaining({ code: "VENDOR_BLOCK_UNREADABLE", line: 5 })]);
  });
});

describe("servers", () => {
  it("[skill-03a] are read from the list, with warnings at their lines", async () => {
    const skill = await readSkill(join(FIXTURES, "three-servers"));
    expect(skill.servers.map(({ name }) => name)).toEqual(["filesystem", "postgres", "ledger"]);
    expect(skill.servers[2]).toMatchObject({
      description: "The ledger of the shop",
      template: { command: "node", env: { LEDGER_TOKEN: "${LEDGER_TOKEN}" } },
    });
    const [implied] = skill.warnings;
    expect(implied?.message).toContain("LEDGER_TOKEN");
    expect(implied?.line).toBeGreaterThanOrEqual(7);
    expect(implied?.line).toBeLessThanOrEqual(16);
  });
});
