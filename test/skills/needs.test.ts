import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { SkillNeeds } from "../../src/model/skill.ts";
import { findProgram } from "../../src/base/programs.ts";
import { isMet, type Machine, missingNeeds, thisMachine } from "../../src/skills/needs.ts";

const NOTHING: SkillNeeds = { bins: [], anyBins: [], env: [], config: [], os: [] };

let dir: string;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "toolcrib-needs-"));
});

afterEach(() => rmSync(dir, { recursive: true, force: true }));

function program(name: string, mode = 0o755): string {
  const path = join(dir, name);
  writeFileSync(path, "#!/bin/sh\n");
  chmodSync(path, mode);
  return path;
}

function machine(env: NodeJS.ProcessEnv, more: Partial<Machine> = {}): Machine {
  return { platform: "linux", env: { PATH: dir, ...env }, hasConfig: () => false, servers: [], ...more };
}

describe("[skill-05b] programs on PATH", () => {
  it.skipIf(process.platform === "win32")("finds a program that may be run, and a link to one", () => {
    const tool = program("tool");
    symlinkSync(tool, join(dir, "alias"));
    const place = { platform: "linux", env: { PATH: `/no/such/folder:${dir}` } } as const;
    expect(findProgram("tool", place)).toBe(tool);
    expect(findProgram("alias", place)).toBe(join(dir, "alias"));
  });

  it.skipIf(process.platform === "win32")("does not take a file without the right to run, or a folder, for one", () => {
    program("data", 0o644);
    mkdirSync(join(dir, "folder"));
    const place = { platform: "linux", env: { PATH: dir } } as const;
    expect(findProgram("data", place)).toBeUndefined();
    expect(findProgram("folder", place)).toBeUndefined();
  });

  it("looks up no name with a path in it, and nothing in the current folder", () => {
    program("tool");
    const seen: string[] = [];
    const record = (path: string): boolean => {
      seen.push(path);
      return true;
    };
    for (const name of ["./tool", "../tool", `${dir}/tool`, "sub\\tool", "C:tool", "", ".", "..", "a\0b"]) {
      expect(findProgram(name, { platform: "linux", env: { PATH: dir }, isProgram: record })).toBeUndefined();
    }
    for (const path of ["", ".", ":", "bin:./node_modules/.bin"]) {
      expect(findProgram("tool", { platform: "linux", env: { PATH: path }, isProgram: record })).toBeUndefined();
    }
    expect(seen).toEqual([]);
    expect(findProgram("tool", { platform: "linux", env: {}, isProgram: record })).toBeUndefined();
  });

  it("on Windows uses Path and PATHEXT in any case, and takes quotes off", () => {
    const there = new Set(["C:\\Program Files\\Git\\git.exe", "D:\\bin\\npx.cmd", "D:\\bin\\run.py", "D:\\bin\\plain"]);
    const look = (name: string, env: NodeJS.ProcessEnv): string | undefined =>
      findProgram(name, { platform: "win32", env, isProgram: (path) => there.has(path) });
    const env = { Path: '"C:\\Program Files\\Git";D:\\bin' };
    expect(look("git", env)).toBe("C:\\Program Files\\Git\\git.exe");
    expect(look("git.exe", env)).toBe("C:\\Program Files\\Git\\git.exe");
    expect(look("npx", env)).toBe("D:\\bin\\npx.cmd");
    expect(look("plain", env)).toBeUndefined();
    expect(look("run", env)).toBeUndefined();
    expect(look("run", { ...env, PathExt: ".PY;.EXE" })).toBe("D:\\bin\\run.py");
  });
});

describe("[skill-05b] needs of a skill", () => {
  it.skipIf(process.platform === "win32")("gives the unmet part of each kind", () => {
    program("curl");
    const needs: SkillNeeds = {
      bins: ["curl", "absent"],
      anyBins: ["gone", "curl"],
      env: ["TOKEN", "EMPTY", "BLANK", "UNSET"],
      config: ["channels.slack", "browser.enabled"],
      os: ["darwin", "linux"],
    };
    const env = { TOKEN: "x", EMPTY: "", BLANK: " " };
    const missing = missingNeeds(
      { needs, servers: [] },
      machine(env, { hasConfig: (path) => path === "browser.enabled" }),
    );
    expect(missing).toEqual({
      bins: ["absent"],
      anyBins: [],
      env: ["EMPTY", "BLANK", "UNSET"],
      config: ["channels.slack"],
      os: [],
      servers: [],
    });
    expect(isMet(missing)).toBe(false);
  });

  it("names all where one of several would do and none is there", () => {
    const missing = missingNeeds(
      { needs: { ...NOTHING, anyBins: ["a", "b"], os: ["darwin", "win32"] }, servers: [] },
      machine({}),
    );
    expect(missing).toEqual({ ...NOTHING, servers: [], anyBins: ["a", "b"], os: ["darwin", "win32"] });
  });

  it("is met by a machine for a skill that needs nothing", () => {
    expect(isMet(missingNeeds({ needs: NOTHING, servers: [] }, machine({})))).toBe(true);
  });

  it.each([
    ["windows", "win32"],
    ["win32", "win32"],
    ["Windows", "win32"],
    ["macos", "darwin"],
    ["darwin", "darwin"],
    ["linux", "linux"],
  ] as const)("takes the system %s for %s", (name, platform) => {
    const other = platform === "linux" ? "darwin" : "linux";
    expect(missingNeeds({ needs: { ...NOTHING, os: [name] }, servers: [] }, machine({}, { platform })).os).toEqual([]);
    expect(
      missingNeeds({ needs: { ...NOTHING, os: [name] }, servers: [] }, machine({}, { platform: other })).os,
    ).toEqual([name]);
  });

  it("tells the case of variables apart except on Windows, and is not fooled by names of objects", () => {
    const needs = { ...NOTHING, env: ["Api_Key", "constructor"] };
    expect(missingNeeds({ needs, servers: [] }, machine({ API_KEY: "x" })).env).toEqual(["Api_Key", "constructor"]);
    expect(missingNeeds({ needs, servers: [] }, machine({ API_KEY: "x" }, { platform: "win32" })).env).toEqual([
      "constructor",
    ]);
  });
});

describe("[skill-05b] OpenClaw's config", () => {
  function withConfig(text: string, env: NodeJS.ProcessEnv = {}): Machine {
    mkdirSync(join(dir, ".openclaw"), { recursive: true });
    writeFileSync(join(dir, ".openclaw", "openclaw.json"), text);
    return thisMachine({ HOME: dir, ...env });
  }

  it("is read as JSON5 and asked by path", () => {
    const has = withConfig("\uFEFF{ channels: { slack: { token: 'x' }, empty: '', off: false, zero: 0, }, /* c */ }");
    expect(has.hasConfig("channels.slack")).toBe(true);
    expect(has.hasConfig("channels.slack.token")).toBe(true);
    for (const path of [
      "channels.empty",
      "channels.off",
      "channels.zero",
      "channels.none",
      "toString",
      "channels.slack.token.length",
    ]) {
      expect(has.hasConfig(path), path).toBe(false);
    }
  });

  it("takes OpenClaw's own defaults for granted, unless the file says otherwise", () => {
    expect(withConfig("{}").hasConfig("browser.enabled")).toBe(true);
    expect(withConfig("{browser: {enabled: false}}").hasConfig("browser.enabled")).toBe(false);
  });

  it("has nothing where there is no file or a broken one", () => {
    expect(thisMachine({ HOME: join(dir, "empty") }).hasConfig("browser.enabled")).toBe(false);
    expect(withConfig("{ not json").hasConfig("browser.enabled")).toBe(false);
  });
});
