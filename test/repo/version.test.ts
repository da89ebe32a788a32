import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, it } from "vitest";
import { VERSION } from "../../src/model/version.ts";

it("the version in the code is the package's", () => {
  const manifest: unknown = JSON.parse(readFileSync(resolve(import.meta.dirname, "../../package.json"), "utf8"));
  expect(manifest).toMatchObject({ version: VERSION });
});
