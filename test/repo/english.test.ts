import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { readSources, type SourceFile } from "../support/read-sources.ts";

const root = join(import.meta.dirname, "..", "..");

/** Turns of phrase that a native technical writer would not use, and what to write instead. */
const PHRASES: readonly (readonly [pattern: RegExp, instead: string])[] = [
  [/\banew\b/, "again"],
  [/\bunder way\b/, "in progress"],
  [/\btold of\b/, "reported"],
  [/\bneeds? a yes\b/, "needs approval"],
  [/\b(?:nobody|somebody|anybody|everybody)\b/i, "name the person or program; no one, someone, anyone"],
  [/\bthat holds now\b/, "current"],
  [/\bof (?:its|their|our) own making\b/, "its own"],
  [
    /(?<!there )\b(?:is|was|are|were) no (?:file|folder|text|number|list|object|name|tool|server|error|command|program|path|url|key|string|map)s?\b/i,
    "is not a ...",
  ],
  [/\/\*\* What\b/, "a doc comment names the thing: The result of ..."],
];

/** Written before this test, and words that attackers use. */
const LEFT_OUT =
  /^src\/(?:guard\/words\.ts$|telemetry\/audit\/|hub\/audit\/)|^src\/store\/parts\/audit|^docs\/(?:detectors|audit)\.md$/;
/** A user of Unix, which is the name of a thing. */
const UNIX_USER = /`nobody`|"nobody"|nobody:x:65534:65534:nobody|as nobody \(65534\)/g;

it("[house-10a] code, messages and documents use plain English", () => {
  const documents = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map((path): SourceFile => ({
    path,
    text: readFileSync(join(root, path), "utf8"),
  }));
  const files = [
    ...readSources(join(root, "src")),
    ...readSources(join(root, "web/src")),
    ...readSources(join(root, "docs"), [".md"]),
    ...documents,
  ];
  const found = files.flatMap(({ path, text }) =>
    LEFT_OUT.test(path)
      ? []
      : text
          .split("\n")
          .flatMap((line, index) =>
            PHRASES.filter(([pattern]) => pattern.test(line.replaceAll(UNIX_USER, ""))).map(
              ([pattern, instead]) => `${path}:${index + 1}: ${pattern.exec(line)?.[0]}; write: ${instead}`,
            ),
          ),
  );
  expect(found).toEqual([]);
});
