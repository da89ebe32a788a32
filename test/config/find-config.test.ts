import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { findConfig, toolcribHome } from "../../src/config/find-config.ts";
import { Workplace } from "./support.ts";

describe("[spine-04f] the config file is found", () => {
  it("by flag, then variable, then the folders upward, then the home", () => {
    const place = new Workplace();
    const cwd = join(place.dir, "a", "b");
    mkdirSync(cwd, { recursive: true });
    const env: NodeJS.ProcessEnv = { TOOLCRIB_HOME: place.home };
    expect(findConfig({ env, cwd })).toBeNull();
    const inHome = place.write("home/toolcrib.json", "{}");
    expect(findConfig({ env, cwd })).toBe(inHome);
    const above = place.write("toolcrib.jsonc", "{}");
    expect(findConfig({ env, cwd })).toBe(above);
    const nearer = place.write("a/toolcrib.json", "{}");
    expect(findConfig({ env, cwd })).toBe(nearer);
    const byVariable = place.write("v.json", "{}");
    expect(findConfig({ env: { ...env, TOOLCRIB_CONFIG: byVariable }, cwd })).toBe(byVariable);
    const byFlag = place.write("a/b/f.json", "{}");
    expect(findConfig({ config: "f.json", env: { ...env, TOOLCRIB_CONFIG: byVariable }, cwd })).toBe(byFlag);
  });

  it("and one that was named and is missing is an error", () => {
    const { dir } = new Workplace();
    expect(() => findConfig({ config: "gone.json", env: {}, cwd: dir })).toThrow(
      /^There is no config file .*gone\.json$/,
    );
    expect(() => findConfig({ env: { TOOLCRIB_CONFIG: "gone.json" }, cwd: dir })).toThrow(
      /which \$TOOLCRIB_CONFIG names/,
    );
  });

  it("with ~ for the user's folder", () => {
    const place = new Workplace();
    const file = place.write("x.json", "{}");
    expect(findConfig({ config: "~/x.json", env: { HOME: place.dir }, cwd: "/" })).toBe(file);
  });
});

it("has its home in ~/.toolcrib unless told otherwise", () => {
  expect(toolcribHome({ HOME: "/u" })).toBe("/u/.toolcrib");
  expect(toolcribHome({ HOME: "/u", TOOLCRIB_HOME: "~/t" })).toBe("/u/t");
  expect(toolcribHome({ HOME: "/u", TOOLCRIB_HOME: "" })).toBe("/u/.toolcrib");
});
