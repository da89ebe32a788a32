import { describe, expect, it } from "vitest";
import type { ScannedSkill, SkillInfo, SkillManifestInfo } from "../../src/contract/skill-schemas.ts";
import * as choice from "../../web/src/views/skills/scan-choice.ts";
import { choices, filterSkills, placeOf, shortPath } from "../../web/src/views/skills/skill-filter.ts";
import { byWeight, missingText, needsOf, worst } from "../../web/src/views/skills/skill-words.ts";

const NONE = { bins: [], anyBins: [], env: [], config: [], os: [] };
const NONE_MISSING = { ...NONE, servers: [] };

function scanned(name: string, more: Partial<ScannedSkill> = {}): ScannedSkill {
  return {
    name,
    description: `About ${name}.`,
    path: `/lib/${name}`,
    source: "openclaw",
    dialect: "openclaw",
    status: "new",
    requires: NONE,
    missing: NONE_MISSING,
    dependenciesMet: true,
    otherOs: false,
    warnings: [],
    findings: [],
    ...more,
  };
}

const FOUND = [
  scanned("fresh"),
  scanned("changed", { status: "updated", dependenciesMet: false }),
  scanned("mac", { otherOs: true, dependenciesMet: false }),
  scanned("evil", { status: "refused" }),
  scanned("taken", { status: "conflict" }),
  scanned("same", { status: "unchanged" }),
];
const names = (skills: readonly { readonly name: string }[]): string[] => skills.map(({ name }) => name);

describe("the choice of what is imported", () => {
  it("[oper-09d] suggests what is new or changed and runs here, and nothing else", () => {
    expect(names(choice.chosenOf(FOUND, new Map(), false))).toEqual(["fresh", "changed"]);
    expect(names(choice.chosenOf(FOUND, new Map(), true))).toEqual(["fresh", "changed"]);
  });

  it("[oper-09d] takes a person's ticks, but never what is refused without the explicit choice", () => {
    const ticks = new Map(FOUND.map(({ path }) => [path, path !== "/lib/fresh"]));
    expect(names(choice.chosenOf(FOUND, ticks, false))).toEqual(["changed", "mac"]);
    expect(names(choice.chosenOf(FOUND, ticks, true))).toEqual(["changed", "mac", "evil", "taken"]);
  });

  it("selects all and none of what is shown, and leaves the others", () => {
    const shown = FOUND.slice(2, 4);
    const all = choice.tickAll(new Map(), shown, true, false);
    expect([...all]).toEqual([["/lib/mac", true]]);
    const none = choice.tickAll(all, FOUND.slice(0, 3), false, false);
    expect(names(choice.chosenOf(FOUND, none, false))).toEqual([]);
  });

  it("[oper-09d] sends force only with those that need it", () => {
    expect(choice.importsFor("/lib", FOUND.slice(0, 1))).toEqual([{ path: "/lib", only: ["/lib/fresh"] }]);
    expect(choice.importsFor("/lib", [...FOUND.slice(0, 1), ...FOUND.slice(3, 5)])).toEqual([
      { path: "/lib", only: ["/lib/fresh"] },
      { path: "/lib", only: ["/lib/evil", "/lib/taken"], force: true },
    ]);
    expect(choice.importsFor("/lib", [])).toEqual([]);
  });

  it("joins the results of several imports", () => {
    const manifest: SkillManifestInfo = {
      ...{ id: "a", name: "a", version: "1.0.0", author: "a", description: "a", category: "tools", icon: "a" },
      ...{ keywords: [], tools: [], source: "openclaw", from: "/a", sourcePath: "/a" },
    };
    const one = { skillId: "a", name: "a", path: "/a", manifest, warnings: [], dependenciesMet: true };
    const failure = { path: "/b", name: "b", code: "blocked", message: "no" };
    const joined = choice.joinResults([
      { imported: [one], unchanged: [], failed: [], totalScanned: 2 },
      { imported: [], unchanged: [one], failed: [failure], totalScanned: 2 },
    ]);
    expect(joined).toEqual({ imported: [one], unchanged: [one], failed: [failure], totalScanned: 2 });
  });

  it("narrows what is shown by kind and by text", () => {
    expect(names(choice.shownOf(FOUND, "refused", ""))).toEqual(["evil", "taken"]);
    expect(names(choice.shownOf(FOUND, "missing", "MAC"))).toEqual(["mac"]);
    expect(names(choice.shownOf(FOUND, "all", "about t"))).toEqual(["taken"]);
  });

  it("[oper-09d] offers places that exist first, and OpenClaw's workspace always", () => {
    const usual = { path: "/home/a/.openclaw/workspace/skills", label: "OpenClaw, workspace", exists: false };
    const claude = { path: "/home/a/.claude/skills", label: "Claude Code", exists: true };
    const cursor = { path: "/home/a/.cursor/skills", label: "Cursor", exists: false };
    expect(choice.orderPlaces([usual, claude, cursor])).toEqual({ first: [claude, usual], more: [cursor] });
    expect(choice.orderPlaces([cursor]).first.map(({ path }) => path)).toEqual(["~/.openclaw/workspace/skills"]);
    const there = { ...usual, exists: true };
    expect(choice.orderPlaces([claude, there]).first).toEqual([there, claude]);
  });
});

describe("requirements and findings", () => {
  it("[oper-09d] says of each requirement whether it was found", () => {
    const requires = { bins: ["jq", "rg"], anyBins: ["curl", "wget"], env: ["KEY"], config: ["a.b"], os: ["darwin"] };
    const missing = { bins: ["rg"], anyBins: [], env: ["KEY"], config: [], os: ["darwin"] };
    const needs = needsOf(requires, missing);
    expect(needs.map(({ name, found }) => `${name}: ${String(found)}`)).toEqual([
      "jq: true",
      "rg: false",
      "curl or wget: true",
      "KEY: false",
      "a.b: true",
      "macOS: false",
    ]);
    expect(missingText(needs)).toBe("3 missing");
    expect(missingText(needsOf(requires, NONE))).toBeUndefined();
  });

  it("puts the worst finding first", () => {
    const finding = (code: string, severity: "note" | "warn" | "refuse") =>
      ({ code, severity, message: "", file: "SKILL.md" }) as const;
    const findings = [finding("a", "note"), finding("b", "refuse"), finding("c", "warn"), finding("d", "refuse")];
    expect(byWeight(findings).map(({ code }) => code)).toEqual(["b", "d", "c", "a"]);
    expect(worst(findings)).toBe("refuse");
    expect(worst([])).toBeUndefined();
  });
});

describe("the list of skills", () => {
  function skill(name: string, more: Partial<SkillInfo>): SkillInfo {
    const { path, status: _, otherOs: __, ...rest } = scanned(name);
    const own = { id: name, from: path, kind: "imported", removable: true, servers: [] } as const;
    return { ...rest, ...own, status: "ready", keywords: [], ...more, servers: [] };
  }
  const skills = [
    skill("tides", { kind: "folder", from: "/skills/tides", source: "agentskills", author: "harbour" }),
    skill("birds", { kind: "folder", from: "/skills/birds" }),
    skill("notes", { from: "/lib" }),
    skill("far", { kind: "server", from: "server:wiki" }),
  ];

  it("[oper-09d] is filtered by source, kind, place and words", () => {
    expect(names(filterSkills(skills, { from: "/skills" }))).toEqual(["tides", "birds"]);
    expect(names(filterSkills(skills, { kind: "folder", source: "openclaw" }))).toEqual(["birds"]);
    expect(names(filterSkills(skills, { q: "about HARBOUR" }))).toEqual(["tides"]);
    expect(names(filterSkills(skills, {}))).toHaveLength(4);
  });

  it("counts what can be chosen, with what the address names", () => {
    expect(choices(skills.map(placeOf), "gone")).toEqual([
      ["/skills", 2],
      ["/lib", 1],
      ["server:wiki", 1],
      ["gone", 0],
    ]);
  });

  it("shortens a path at its beginning", () => {
    expect(shortPath("/short")).toBe("/short");
    expect(shortPath("/home/somebody/.openclaw/workspace/skills")).toBe("…/.openclaw/workspace/skills");
    expect(shortPath("x".repeat(60)).length).toBe(35);
  });
});
