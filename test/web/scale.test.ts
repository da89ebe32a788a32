/** One scale of type and space for the whole page: web/src/styles.css has it, and what is written in a view is of it. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";

const SOURCE = join(import.meta.dirname, "..", "..", "web", "src");
const views = readdirSync(SOURCE, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".tsx"));
const styles = readFileSync(join(SOURCE, "styles.css"), "utf8");

/** Times 4 px. */
const STEPS = new Set(["0", "px", "0.5", "1", "1.5", "2", "3", "4", "6", "8", "10", "12", "16", "20", "24", "auto"]);
const TYPE = new Set(["xs", "sm", "base", "lg", "xl"]);
const WEIGHTS = new Set(["normal", "medium", "semibold", "sans", "mono"]);
const LEADINGS = new Set(["tight", "normal", "loose"]);
const RADII = new Set(["sm", "md", "lg", "xl", "full", "none"]);

/** The classes with a size that is not of the scale. */
function strays(code: string): string[] {
  return code.split(/[\s"'`]+/).filter((word) => {
    const name = word
      .replace(/!$/, "")
      .replace(/^(?:[\w@[\]=-]+:)+/, "")
      .replace(/^-/, "");
    const [, space] = /^(?:[pm][xytblr]?|gap(?:-[xy])?|space-[xy])-([\d.]+|px|auto|\[.+\])$/.exec(name) ?? [];
    if (space !== undefined) return !STEPS.has(space) && !space.startsWith("[env(");
    const [, size] = /^text-(xs|sm|base|lg|\d?xl|\[[\d.].*\])$/.exec(name) ?? [];
    if (size !== undefined) return !TYPE.has(size);
    const [, kind, value = ""] = /^(font|leading|rounded(?:-[tblr]{1,2})?)-([\w.]+|\[.+\])$/.exec(name) ?? [];
    if (kind === "font") return !WEIGHTS.has(value);
    if (kind === "leading") return !LEADINGS.has(value);
    if (kind !== undefined) return !RADII.has(value);
    // Heights in pixels are those of lines; the rest depends on the window or on the text.
    return name === "rounded" || /^(?:min-|max-)?h-\[[\d.]+(?:px|rem|em)\]$/.test(name) || name.startsWith("tracking-");
  });
}

describe("the scale of type and space", () => {
  it.each(views)("[joy-09f] %s stays within it", (path) => {
    expect(strays(readFileSync(join(SOURCE, path), "utf8"))).toEqual([]);
  });

  it("[joy-09f] is noticed where it is left", () => {
    expect(
      strays(`"p-2.5 sm:mt-7! -mx-5 gap-[3px] text-2xl text-[15px] font-bold leading-5 rounded h-[37px]"`),
    ).toEqual([
      ..."p-2.5 sm:mt-7! -mx-5 gap-[3px] text-2xl text-[15px] font-bold leading-5 rounded h-[37px]".split(" "),
    ]);
    expect(strays(`"p-2 mt-auto text-sm text-soft font-mono leading-tight rounded-t-lg h-line max-h-[60dvh]"`)).toEqual(
      [],
    );
  });

  it("[joy-09f] the stylesheet has no sizes beside it", () => {
    const rules = styles.slice(styles.indexOf("@layer components"));
    const sizes = rules.matchAll(
      /(?:font-size|font-weight|line-height|padding[\w-]*|margin[\w-]*|border-radius|min-height):([^;]+);/g,
    );
    const odd = [...sizes]
      .map(([, value = ""]) => value.trim())
      .filter((value) => !/^(?:(?:--spacing\([\d.]+\)|var\(--[\w-]+\)|0)\s?)+$/.test(value));
    expect(odd).toEqual([]);
  });
});
