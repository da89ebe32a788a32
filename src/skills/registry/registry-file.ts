/** `registry.json`: where manifests were kept before there was a store. It is read, taken into the store and set aside. */
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { ToolcribError } from "../../model/errors.ts";
import { isJsonObject } from "../../model/json.ts";
import type { SkillManifest } from "../../model/skill.ts";
import { isManifest } from "./manifest-check.ts";

const VERSION = 1;

export function registryFile(home: string): string {
  return join(home, "skills", "registry.json");
}

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
  return manifests.toSorted((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0));
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
