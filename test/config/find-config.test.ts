import { mkdirSync, realpathSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { findConfig, toolcribHome } from "../../src/config/find-config.ts";
import { Workplace } from "./support.ts";

describe("[spine-04f] the config file is found", () => {
  it("by flag, then variable; otherwise the home's, and a project's from the folder upward", () => {
    const place = new Workplace();
    const dir = realpathSync(place.dir);
    const cwd = join(dir, "a", "b");
    mkdirSync(cwd, { recursive: true });
    const env: NodeJS.ProcessEnv = { TOOLCRIB_HOME: place.home };
    expect(findConfig({ env, cwd })).toEqual({ home: null, project: null });
    const home = place.write("home/toolcrib.json", "{}");
    expect(findConfig({ env, cwd })).toEqual({ home, project: null });
    place.write("toolcrib.jsonc", "{}");
    expect(findConfig({ env, cwd })).toEqual({ home, project: join(dir, "toolcrib.jsonc") });
    place.write("a/toolcrib.json", "{}");
    expect(findConfig({ env, cwd })).toEqual({ home, project: join(dir, "a/toolcrib.json") });
    const byVariable = place.write("v.json", "{}");
    expect(findConfig({ env: { ...env, TOOLCRIB_CONFIG: byVariable }, cwd })).toEqual({ named: byVariable });
    const byFlag = place.write("a/b/f.json", "{}");
    const found = findConfig({
      config: "f.json",
      env: { ...env, TOOLCRIB_CONFIG: byVariable },
      cwd: join(place.dir, "a/b"),
    });
    expect(found).toEqual({ named: byFlag });
  });

  it("[trust-01a] and nothing in the home is a project's, whatever link leads there", () => {
    const place = new Workplace();
    const env: NodeJS.ProcessEnv = { TOOLCRIB_HOME: place.home };
    const home = place.write("home/toolcrib.json", "{}");
    place.write("home/skills/homes/notes/toolcrib.json", "{}");
    expect(findConfig({ env, cwd: place.home })).toEqual({ home, project: null });
    expect(findConfig({ env, cwd: join(place.home, "skills/homes/notes") })).toEqual({ home, project: null });
    symlinkSync(join(place.home, "skills"), join(place.dir, "link"));
    expect(findConfig({ env, cwd: join(place.dir, "link/homes/notes") })).toEqual({ home, project: null });
  });

  it("and one that was named and is missing is an error, unless it is the home's that is still to be made", () => {
    const { dir, home } = new Workplace();
    expect(() => findConfig({ config: "gone.json", env: {}, cwd: dir })).toThrow(
      /^There is no config file .*gone\.json$/,
    );
    expect(() => findConfig({ env: { TOOLCRIB_CONFIG: "gone.json" }, cwd: dir })).toThrow(
      /which \$TOOLCRIB_CONFIG names/,
    );
    const found = findConfig({ config: join(home, "toolcrib.json"), env: { TOOLCRIB_HOME: home }, cwd: dir });
    expect(found).toEqual({ home: null, project: null });
  });

  it("with ~ for the user's folder", () => {
    const place = new Workplace();
    const file = place.write("x.json", "{}");
    expect(findConfig({ config: "~/x.json", env: { HOME: place.dir }, cwd: "/" })).toEqual({ named: file });
  });
});

it("has its home in ~/.toolcrib unless told otherwise", () => {
  expect(toolcribHome({ HOME: "/u" })).toBe("/u/.toolcrib");
  expect(toolcribHome({ HOME: "/u", TOOLCRIB_HOME: "~/t" })).toBe("/u/t");
  expect(toolcribHome({ HOME: "/u", TOOLCRIB_HOME: "" })).toBe("/u/.toolcrib");
});
