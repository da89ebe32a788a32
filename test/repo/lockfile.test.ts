import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { isJsonObject, type JsonObject } from "../../src/model/json.ts";

const root = join(import.meta.dirname, "..", "..");

/** Where packages come from is the business of the machine that installs them. Prose may name such a host, files may not. */
const PACKAGE_HOST = /\bregistry\.[a-z0-9.-]+\/|\bdeb\.debian\.org\b/;

function lockedPackages(): [string, JsonObject][] {
  const lock: unknown = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
  if (!isJsonObject(lock) || !isJsonObject(lock["packages"])) throw new Error("package-lock.json has no packages");
  return Object.entries(lock["packages"]).filter((entry): entry is [string, JsonObject] => isJsonObject(entry[1]));
}

it("[spine-01b] has a lock file that pins every package by content and names no host", () => {
  const packages = lockedPackages().filter(([path]) => path !== "");
  expect(packages.length).toBeGreaterThan(100);
  expect(packages.filter(([, entry]) => "resolved" in entry)).toEqual([]);
  // What is part of another package is pinned with that one.
  const own = packages.filter(([, entry]) => entry["inBundle"] !== true);
  expect(own.filter(([, entry]) => typeof entry["integrity"] !== "string")).toEqual([]);
});

it.skipIf(!existsSync(join(root, ".git")))("[spine-01b] names no package host in any tracked file but prose", () => {
  const tracked = execFileSync("git", ["ls-files", "-z"], { cwd: root, encoding: "utf8" }).split("\0").filter(Boolean);
  const naming = tracked
    .filter((file) => !file.endsWith(".md") && existsSync(join(root, file)))
    .filter((file) => PACKAGE_HOST.test(readFileSync(join(root, file), "utf8")));
  expect(naming).toEqual([]);
  expect(PACKAGE_HOST.test(["https://registry", "example.com/zod"].join("."))).toBe(true);
});
