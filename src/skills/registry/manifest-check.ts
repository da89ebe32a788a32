/** Manifests as they come out of a file or a database: whether nothing breaks on them. */
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import type { SkillManifest } from "../../model/skill.ts";
import { isSafePath } from "./safe-path.ts";
import { isSkillId } from "./skill-id.ts";

const TEXTS = ["name", "version", "author", "description", "source", "sourcePath", "importedAt", "digest"];
const LISTS = ["tools", "keywords", "warnings", "findings"];

/** What is needed so that nothing breaks on it and no path leaves the folder; the rest was written by this program. */
export function isManifest(value: unknown): value is SkillManifest {
  if (!isJsonObject(value)) return false;
  const { id, dir, facts } = value;
  return (
    typeof id === "string" &&
    isSkillId(id) &&
    typeof dir === "string" &&
    dir.startsWith(`files/${id}/`) &&
    isSafePath(dir) &&
    TEXTS.every((key) => typeof value[key] === "string") &&
    LISTS.every((key) => Array.isArray(value[key])) &&
    isNeeds(value["missing"]) &&
    isJsonObject(facts) &&
    isNeeds(facts["needs"]) &&
    Array.isArray(facts["files"]) &&
    facts["files"].every(isFile)
  );
}

function isNeeds(value: unknown): boolean {
  return isJsonObject(value) && ["bins", "anyBins", "env", "config", "os"].every((key) => Array.isArray(value[key]));
}

function isFile(value: unknown): boolean {
  if (!isJsonObject(value)) return false;
  const { path, digest, size }: JsonObject = value;
  return typeof path === "string" && isSafePath(path) && typeof digest === "string" && typeof size === "number";
}
