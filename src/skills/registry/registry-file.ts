/** `registry.json`: the manifests, one on a line, so that a person can read it and compare two versions of it. */
import { readFile, stat } from "node:fs/promises";
import { ToolcribError } from "../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import type { SkillManifest } from "../../model/skill.ts";
import { isSafePath } from "./safe-path.ts";
import { isSkillId } from "./skill-id.ts";

const VERSION = 1;

/** Changes whenever the file does; undefined where there is none. */
export async function stampOf(file: string): Promise<string | undefined> {
  const found = await stat(file, { bigint: true }).catch(() => undefined);
  return found === undefined ? undefined : `${found.ino} ${found.size} ${found.mtimeNs} ${found.ctimeNs}`;
}

/** In order of id; none where there is no file. Rejects with `invalid_config` for one that cannot be used. */
export async function readRegistry(file: string): Promise<SkillManifest[]> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "unknown reason";
    if (code === "ENOENT") return [];
    throw unusable(file, `cannot be read (${code})`, "Make it readable.");
  }
  return parseRegistry(file, text);
}

export function renderRegistry(manifests: readonly SkillManifest[]): string {
  const lines = sorted(manifests).map((manifest) => JSON.stringify(manifest));
  return `{"version": ${VERSION}, "skills": [\n${lines.join(",\n")}\n]}\n`;
}

function parseRegistry(file: string, text: string): SkillManifest[] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw damaged(file, "is no JSON");
  }
  const version = isJsonObject(value) ? value["version"] : undefined;
  if (typeof version === "number" && version > VERSION) {
    throw unusable(file, `has version ${version}, and this Toolcrib knows ${VERSION}`, "Use a newer Toolcrib.");
  }
  const skills = isJsonObject(value) && version === VERSION ? value["skills"] : undefined;
  if (!Array.isArray(skills)) throw damaged(file, "holds no list of skills");
  const ids = new Set<string>();
  const manifests = skills.map((manifest: unknown, index): SkillManifest => {
    if (!isManifest(manifest)) throw damaged(file, `holds something at ${index + 1} of its list that is no skill`);
    if (ids.has(manifest.id)) throw damaged(file, `holds ${manifest.id} twice`);
    ids.add(manifest.id);
    return manifest;
  });
  return sorted(manifests);
}

function sorted(manifests: readonly SkillManifest[]): SkillManifest[] {
  return manifests.toSorted((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0));
}

const TEXTS = ["name", "version", "author", "description", "source", "sourcePath", "importedAt", "digest"];
const LISTS = ["tools", "keywords", "warnings", "findings"];

/** What is needed so that nothing breaks on it and no path leaves the folder; the rest was written by this program. */
function isManifest(value: unknown): value is SkillManifest {
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

function damaged(file: string, what: string): ToolcribError {
  return unusable(file, what, "Bring back an earlier version of it, or move it away and import the skills anew.");
}

function unusable(file: string, what: string, hint: string): ToolcribError {
  return new ToolcribError("invalid_config", `The imported skills in ${file} cannot be used: it ${what}.`, {
    hint,
    details: { file },
  });
}
